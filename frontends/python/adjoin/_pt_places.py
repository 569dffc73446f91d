"""adjoin._pt_places: where storages of a file go, and who has a say in it: packages that others register."""

import copyreg
import io
import pickle

from . import _C

_HOST, _DEVICES = 10, 20  # priorities of what is built in, as PyTorch has them
packages = []  # (priority, tagger, deserializer) of others


def register_package(priority, tagger, deserializer):
    """Lets a package say where storages are and bring them there; a lower priority is asked earlier.

    ``tagger(storage)`` gives a storage's location or None. ``deserializer(storage, location)`` gives a storage at the
    location or None. The host itself has priority 10, the devices that are here have 20.
    """
    if not callable(tagger) or not callable(deserializer):
        raise TypeError("register_package: tagger and deserializer must be functions")
    packages.append((priority, tagger, deserializer))
    packages.sort(key=lambda package: package[0])


def _asked(storage, location):
    """What the first package says that has an answer: (found, storage)."""
    own = _HOST if location == "cpu" else _DEVICES
    ours = (own, None, _brought)
    for _, _, deserializer in sorted([*packages, ours], key=lambda package: package[0]):
        found = deserializer(storage, location)
        if found is not None:
            return found
    return None


def _brought(storage, location):
    """The storage on a device that is here; None where there is no such device."""
    return storage.to(location) if _is_here(location) else None


def default_restore_location(storage, location):
    """The storage at a location, by the first package that knows how."""
    found = _asked(storage, str(location))
    if found is None:
        raise RuntimeError(
            f"default_restore_location: nobody knows how to bring {storage!r} to {location!r}; "
            "name a device that is here, as 'cpu', or tell how by register_package()"
        )
    return found


def location_tag(storage):
    """Where a storage is, by the first package that knows: ``cpu``, ``cuda:0``."""
    device = getattr(storage, "device", None)
    own = _HOST if device is not None and device.type == "cpu" else _DEVICES
    ours = (own, lambda storage: None if device is None else str(device), None)
    for _, tagger, _ in sorted([*packages, ours], key=lambda package: package[0]):
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"location_tag: nobody knows where a {type(storage).__name__} is; register_package() tells how")


def by_package(storage, location):
    """A storage by a package of others that is asked before what is built in, or None."""
    own = _HOST if location == "cpu" else _DEVICES
    for priority, _, deserializer in packages:
        if priority < own or not _is_here(location):
            found = deserializer(storage, location)
            if found is not None:
                return found
    return None


def _is_here(location):
    try:
        device = _C.device(location)
        return _C.device_count(device.type) > (device.index or 0)
    except RuntimeError:
        return False


def check_tags(obj):
    """Refuses to save what a package would tag otherwise than the writer does, by the device's name."""
    if not packages:
        return

    class Looking(pickle.Pickler):
        dispatch_table = copyreg.dispatch_table

        def reducer_override(self, value):
            if not isinstance(value, _C.Tensor):
                return NotImplemented
            storage = value.untyped_storage()
            tag, plain = location_tag(storage), str(storage.device)
            if tag not in (plain, plain.partition(":")[0]):
                raise NotImplementedError(
                    f"save: a registered package tags a storage of {plain} as {tag!r}; files name the device itself, so give the "
                    "place when the file is loaded: map_location, or the package's deserializer"
                )
            return str, ()

    Looking(io.BytesIO()).dump(obj)


def validate_cuda_device(location):
    """The index of the CUDA device that a location names; RuntimeError where there is no such device."""
    return _validated(location, "cuda")


def validate_hpu_device(location):
    """The same of a device of the kind hpu, which a plugin would bring."""
    return _validated(location, "hpu")


def _validated(location, kind):
    device = _C.device(location)
    if device.type != kind:
        raise RuntimeError(f"validate_{kind}_device: {location!r} names no {kind} device")
    if not _is_here(location):
        raise RuntimeError(
            f"validate_{kind}_device: {location!r} is asked for and is not here; load with map_location='cpu', or with the name of a "
            "device that is here"
        )
    return device.index or 0
