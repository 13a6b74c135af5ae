"""A small free Game Boy cartridge with its state at the same addresses as Pokemon Red.

It contains no data of any game. Arrows walk (on maps with the size of Pallet Town and Route 1), A trains, B sets an
event flag, START earns a badge. It allows testing all code that reads the memory of Pokemon Red without the ROM, which
cannot be distributed.
"""

import functools

__all__ = ["practice_rom"]

_SIZE = 0x8000
_ENTRY = 0x0100
_CODE = 0x0150

# Machine code of the Game Boy (https://gbdev.io/pandocs): bytes in hex. "name:" is a label, ">name" the relative
# distance to it, "@name" its address.
_PROGRAM = """
        F3 AF E0 40 E0 0F               ; no interrupts are served, the screen is off
        3C E0 FF                        ; the start of a frame ends a halt
        21 00 D0                        ; clear D000 to DFFF
clear:  AF 22 7C FE E0 20 >clear
        21 00 80                        ; one tile: row n shows the number n
tile:   7D 22 FE 0F 20 >tile
        21 00 98                        ; the background is that tile everywhere
ground: AF 22 7C FE 9C 20 >ground
        3E 05 EA 61 D3 EA 62 D3         ; y = x = 5
        3E 91 E0 40                     ; the screen is on
frame:  76 00 AF E0 0F                  ; wait for a frame
        21 00 C0 34 7E E6 10 3E E4      ; count it; swap light and dark every 16 frames
        28 >light 3E 1B
light:  E0 47
        3E 20 E0 00 F0 00 F0 00 2F E6 0F CB 37 47       ; b = down up left right 0 0 0 0, the arrows held
        3E 10 E0 00 F0 00 F0 00 2F E6 0F B0 47          ; and START SELECT B A in the low bits
        2C 7E 2F A0 70 47               ; b = those of them not held one frame ago
        21 62 D3                        ; hl = x
        CB 60 28 >right 7E FE 13 28 >right 34           ; right: x + 1, up to 19
right:  CB 68 28 >left 7E B7 28 >left 35                ; left: x - 1
left:   2D                              ; hl = y
        CB 78 28 >down 34               ; down: y + 1
        FA 5E D3 B7 20 >route
        7E FE 12 20 >down 35 18 >down   ; Pallet Town ends at 17
route:  7E FE 24 20 >down AF 77 EA 5E D3        ; Route 1 ends at 35, where Pallet Town begins
down:   CB 70 28 >up                    ; up: y - 1
        7E B7 20 >north
        FA 5E D3 B7 20 >up              ; Route 1 begins at 0
        3E 0C EA 5E D3 36 23 18 >up     ; Pallet Town leads to the end of Route 1
north:  35
up:     CB 40 28 >a                     ; A: a party of one gains a level, up to 100
        3E 01 EA 63 D1 21 8C D1 7E FE 64 28 >a 34
a:      CB 48 28 >b 21 47 D7 37 CB 16   ; B: one flag more of the first eight
b:      CB 58 28 >start 21 56 D3 37 CB 16       ; START: one badge more
start:  FA 62 D3 87 87 E0 43            ; the picture shows x and y
        FA 61 D3 87 87 E0 42
        C3 @frame
"""


@functools.cache
def practice_rom() -> bytes:
    """Return the cartridge: 32 KiB, without memory banks, with the checksum that its header needs."""
    rom = bytearray(_SIZE)
    rom[_ENTRY : _ENTRY + 4] = bytes((0x00, 0xC3, *_CODE.to_bytes(2, "little")))
    rom[0x134:0x13C] = b"PRACTICE"
    code = _assembled(_PROGRAM, _CODE)
    rom[_CODE : _CODE + len(code)] = code
    rom[0x14D] = -sum(byte + 1 for byte in rom[0x134:0x14D]) & 0xFF
    return bytes(rom)


def _assembled(program: str, origin: int) -> bytes:
    """Assemble ``program`` for the address ``origin``."""
    words = [word for line in program.splitlines() for word in line.partition(";")[0].split()]
    places: dict[str, int] = {}
    position = origin
    for word in words:
        if word.endswith(":"):
            places[word[:-1]] = position
        else:
            position += 2 if word.startswith("@") else 1
    code = bytearray()
    for word in words:
        if word.startswith(">"):
            code += (places[word[1:]] - origin - len(code) - 1).to_bytes(1, "little", signed=True)
        elif word.startswith("@"):
            code += places[word[1:]].to_bytes(2, "little")
        elif not word.endswith(":"):
            code += bytes.fromhex(word)
    return bytes(code)
