# Sourced by table.sh, and by run.sh for its mode rows, after cells.sh: print the section on rows.
cat <<END

## One row for a function

Images by name (the default) beside \`--rows body\`, which was the only layout before: made, and read by perf report. "bodies" is 100 000
functions of 1 000 names, compiled one after the other. The last column is the size of perf.data: recorded, by name, by body.

| | inject by name | by body | perf report by name | by body | on the recording | bytes |
|---|---|---|---|---|---|---|
END
for n in 100000 bodies tinyjit node; do
    [ -n "$(median rows-inject by-name "$n" 4)" ] || continue
    printf '| %s |%s%s %s |\n' "$n" "$(cells rows-inject "$n" by-name by-body)" "$(cells rows-report "$n" by-name by-body recording)" \
        "$(fact "rows_bytes_$n" | sed 's/ *$//; s/ /, /g')"
done
