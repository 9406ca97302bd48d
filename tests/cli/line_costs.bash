# A C program with inlined calls, and what each of its lines costs by callgrind's format.

native_source() {
    cat >inlined.c <<'END'
static inline __attribute__((always_inline)) long twist(long v)
{
    for (int i = 0; i < 20; i++)
        v = v * 31 + (v >> 3);
    return v;
}
static inline __attribute__((always_inline)) long twice(long v)
{
    return twist(v) + twist(v + 1);
}
__attribute__((noinline)) static long run(long v)
{
    return twice(v) ^ 1;
}
int main(void)
{
    long all = 0;
    for (long n = 0; n < 6000000; n++)
        all += run(n);
    return all == 42;
}
END
}

# line_costs FUNCTION FILE: "LINE COST" of what FUNCTION itself costs in a callgrind file, "call LINE COST" of what it calls.
line_costs() {
    awk -v name="$1" '
        /^c?fn=/ { # a name stands where its number is used first, be it for a caller or for what is called
            id = substr($1, index($1, "=") + 1)
            if (NF > 1) names[id] = substr($0, length($1) + 2)
        }
        /^fn=/ { inside = names[id] == name }
        inside && /^[0-9]+ [0-9]+$/ { print call $0 }
        { call = /^calls=/ ? "call " : "" }' "$2"
}

# mostly_in LINE FUNCTION FILE: most of what FUNCTION itself costs is in LINE.
mostly_in() {
    line_costs "$2" "$3" | awk -v wanted="$1" '$1 != "call" { all += $2 } $1 == wanted { there += $2 } END { exit !(all > 0 && there > all / 2) }' ||
        complain "$2: $(line_costs "$2" "$3")"
}
