# Programs whose native code is in the stacks that are looked at.

# Small C programs whose stacks are looked at.  Recorded live they have the machine's C library.  In a stored recording they stand
# themselves, without one (tests/producers/bare_program.h).

# native NAME OPTION...: NAME, of NAME.c.  To be called in what is recorded.
native() {
    local bare=()
    [ "$RECORDINGS" = live ] || bare=(-static -nostdlib -ffreestanding -fno-builtin -Wl,--eh-frame-hdr -include "$here/../producers/bare_program.h")
    gcc "${@:2}" "${bare[@]}" -o "$1" "$1.c"
}
