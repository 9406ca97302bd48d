# How long an adapter is: awk -f lines.awk FILE...  Lines of code, without comments, blank lines and the places of hooks.
{ sub(/\/\*.*\*\//, "") }
/\/\*/ { comment = 1 }
!comment && !/^(#[^i]|@|[ \t]*--|[ \t]*\/\/|[ \t]*$)/ { count++ }
/\*\// { comment = 0 }
END { print count }
