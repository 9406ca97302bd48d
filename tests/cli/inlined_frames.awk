# inlined_frames.awk -v returns=0|1 INLINE_LOG PLAIN FRAMES: chains with inlined calls as frames are right.
#
# PLAIN and FRAMES are what perf script -F ip,sym,symoff prints without and with them, INLINE_LOG is tinyjit's.  In front of each frame of
# PLAIN stand in FRAMES the calls that the log has there, in one of the bodies of that name; and nothing else.  RETURNS: callers are return
# addresses, so that the call is in front of them.
function calls_at(body, offset,    i) {
    for (i = rows[body]; i > 0; i--)
        if (start[body, i] <= offset)
            return calls[body, i]
    return ""
}

function number(digits,    i, value) {
    for (i = 1; i <= length(digits); i++)
        value = 16 * value + index("0123456789abcdef", substr(digits, i, 1)) - 1
    return value
}

function wrong(what) {
    if (wrongs++ < 5)
        print what >"/dev/stderr"
}

# The frame TEXT, "NAME+0xOFFSET", with INLINED in front of it, is possible.
function is_right(text, inlined, innermost,    at, name, offset, count, list, i) {
    at = match(text, /\+0x[0-9a-f]+$/)
    name = at ? substr(text, 1, at - 1) : text
    if (!(name in bodies))
        return inlined == ""
    offset = number(substr(text, at + 3)) - (returns && !innermost)
    count = split(bodies[name], list, " ")
    for (i = 1; i <= count; i++)
        if (calls_at(list[i], offset) == inlined)
            return 1
    return 0
}

FILENAME == ARGV[1] && split($0, field, "\t") && field[1] == "code" {
    body++
    bodies[field[4]] = bodies[field[4]] " " body
    next
}

FILENAME == ARGV[1] {
    count = split($0, field, "\t")
    if (field[1] != "at")
        next
    start[body, ++rows[body]] = field[2] + 0
    for (i = 3; i + 4 <= count; i += 4)
        calls[body, rows[body]] = calls[body, rows[body]] field[i] " (inlined);"
    next
}

{ sub(/^[ \t]*[0-9a-f]+ /, "") }

FILENAME == ARGV[2] { plain[++plain_count] = $0; next }

/ \(inlined\)/ { sub(/\+0x[0-9a-f]+$/, ""); inlined = inlined $0 ";"; frames++; next }

{
    if ($0 != plain[++at_plain])
        wrong("frame " at_plain ": " $0 ", and not " plain[at_plain])
    else if (!is_right($0, inlined, plain[at_plain - 1] == ""))
        wrong("in " $0 " was inlined: " inlined)
    inlined = ""
}

END {
    printf "%d frames, %d of them inlined, %d wrong\n", at_plain + frames, frames, wrongs
    exit wrongs || at_plain != plain_count || frames < 100
}
