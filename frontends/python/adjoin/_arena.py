"""adjoin._arena: blocks of shared memory, cut out of few large segments and used again.

Who holds a block is written down beside it (native code, segment.hpp); the process that cut it looks there now and then.
"""

import collections

from . import _C

HEADER = 64  # bytes before a block's own
_FIRST = 4096
_SIZES = (1 << 30, 1 << 28, 1 << 26)  # of a segment: an address range, of which only what is used is memory
_STEP = 1 << 18  # memory is asked of the system in pieces of at least this
_WARM = 1 << 28  # so many bytes of free blocks keep their memory
_MANY = 1 << 22  # fresh bytes after which all blocks are looked through for free ones


def _rounded(size):
    """At most a quarter more, a sixteenth of large ones, so that blocks of about one size serve each other."""
    if size <= 1024:
        return -size % 64 + size
    step = 1 << (size.bit_length() - (3 if size < 1 << 24 else 5))
    return -size % step + size


class Arena:
    """The blocks that this process has cut, in use and free."""

    def __init__(self, known):
        self.known = known  # name -> segment: where others look for them
        self.segments = []
        self.top = self.populated = 0  # of the last segment
        self.used = collections.deque()  # (segment, offset, size), whoever uses them
        self.free = collections.defaultdict(collections.deque)  # size -> (segment, offset), warmest last
        self.cold = set()  # free places whose memory went back to the system
        self.warm = 0
        self.fresh = 0

    def block(self, size):
        """A block of so many bytes, held by this process."""
        whole = _rounded(size + HEADER)
        self._look(8)
        place = self._reused(whole)
        if place is None and max(self.fresh, whole) > _MANY:
            self._look(len(self.used))
            place = self._reused(whole)
            if place is None:
                self._reap()
                place = self._reused(whole)
        segment, offset = place or self._cut(whole)
        block = segment.start(offset, size, whole)
        self.used.append((segment, offset, whole))
        return block

    def _look(self, count):
        """Finds blocks that have become free among the next so many."""
        used = self.used
        for _ in range(min(count, len(used))):
            entry = used.popleft()
            segment, offset, whole = entry
            if not segment.is_free(offset):
                used.append(entry)
                continue
            self.free[whole].append((segment, offset))
            self.warm += whole
        if self.warm > _WARM:
            self._cool()

    def _reap(self):
        for segment in self.segments:
            segment.reap()
        self.fresh = 0
        self._look(len(self.used))

    def _cool(self):
        for whole in sorted(self.free, reverse=True):
            for place in self.free[whole]:
                if self.warm <= _WARM // 2:
                    return
                if place not in self.cold:
                    segment, offset = place
                    segment.punch(offset, whole - HEADER)
                    self.cold.add(place)
                    self.warm -= whole

    def _reused(self, whole):
        places = self.free.get(whole)
        if not places:
            return None
        place = places.pop()
        if place in self.cold:
            _populate(place[0], place[1], whole)
            self.cold.discard(place)
        else:
            self.warm -= whole
        return place

    def _cut(self, whole):
        if not self.segments or self.top + whole > self.segments[-1].bytes:
            self._grow(whole)
        segment, offset = self.segments[-1], self.top
        if offset + whole > self.populated:
            end = min(max(offset + whole, self.populated + _STEP), segment.bytes)
            _populate(segment, self.populated, end - self.populated)
            self.populated = end
        self.top += whole
        self.fresh += whole
        return segment, offset

    def _grow(self, whole):
        self._drop_empty()
        sizes = [size for size in _SIZES if size >= whole + _FIRST] or [whole + _FIRST]
        for size in sizes:
            try:
                segment = _C.SharedSegment(-size % _FIRST + size)
                break
            except OSError as error:
                if size == sizes[-1]:
                    raise _no_memory(whole, error) from None
        self.segments.append(segment)
        self.known[segment.name] = segment
        self.top = self.populated = _FIRST

    def _drop_empty(self):
        """Segments of which no block is used go."""
        busy = {id(segment) for segment, _, _ in self.used}
        for segment in [segment for segment in self.segments if id(segment) not in busy]:
            self.segments.remove(segment)
            self.known.pop(segment.name, None)
            for whole, places in self.free.items():
                for place in [place for place in places if place[0] is segment]:
                    places.remove(place)
                    if place in self.cold:
                        self.cold.discard(place)
                    else:
                        self.warm -= whole

    def trim(self):
        """Gives the memory of free blocks back to the system."""
        self._reap()
        for whole, places in self.free.items():
            for segment, offset in places:
                if (segment, offset) not in self.cold:
                    segment.punch(offset, whole - HEADER)
                    self.cold.add((segment, offset))
        self.warm = 0


def _populate(segment, offset, size):
    try:
        segment.populate(offset, size)
    except OSError as error:
        raise _no_memory(size, error) from None


def _no_memory(size, error):
    return _C.OutOfMemoryError(
        f"shared memory: the system has no {size} bytes ({error.strerror}): free memory, raise the limit of the control "
        "group or of open files, or share less"
    )
