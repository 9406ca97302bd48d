# -v program=PATH -v mapped="START SIZE PLACE" -f one_way.awk LOG CHAINS: judge call chains by what one_way, the program at PATH, says
# of itself.  LOG is its output, with addresses in the file; CHAINS is that of `perf script -F ip,dso`.  perf 6.1 prints addresses in
# the file there, and perf 6.12 those in memory: SIZE bytes at START, from the PLACE in the file on.
#
# In a chain the functions of the LOG must each be followed by its caller, with libraries between them at most.  Prints
#
#     whole N short N wrong N other N
#
# where whole ones go as far as the functions that nobody in the LOG calls, short ones end before, and others have none of the
# functions (what happens before and behind).  The first wrong and short ones go to standard error.
function number(hex,    i, value) {
    value = 0
    for (i = 1; i <= length(hex); i++)
        value = value * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
    return value
}
function name_at(ip,    i, at) {
    if (!(ip in known)) {
        at = number(ip)
        if (at >= start && at - start < size) at += place - start
        known[ip] = ""
        for (i = 1; i <= count; i++)
            if (at >= first[i] && at < last[i]) known[ip] = name[i]
    }
    return known[ip]
}
BEGIN {
    split(mapped, field)
    start = number(field[1]); size = number(field[2]); place = number(field[3])
}
FNR == NR { count++; first[count] = number($1); last[count] = number($2); name[count] = $3; caller[$3] = $4; next }
FNR == 1 { RS = ""; $0 = $0 }
{
    said = ""; wanted = ""; right = 1; any = 0
    for (i = 1; i < NF; i += 2) {
        here = $(i + 1) == "(" program ")" ? name_at($i) : ""
        if (here == "") { said = said " " $i; continue }
        said = said " " here "=" $i
        if (any && here != wanted) right = 0
        any = 1
        wanted = caller[here]
    }
    if (!any) other++
    else if (!right && bad++ < 3) print "wrong:" said >"/dev/stderr"
    else if (right && wanted == "-") whole++
    else if (right && short++ < 3) print "short:" said >"/dev/stderr"
}
END { print "whole", whole + 0, "short", short + 0, "wrong", bad + 0, "other", other + 0 }
