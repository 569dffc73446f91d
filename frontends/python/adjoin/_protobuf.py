"""adjoin._protobuf: what writers of protocol buffers share."""


def varint(number):
    """A whole number in groups of 7 bits, the lowest first; negative ones as 64 bits."""
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
