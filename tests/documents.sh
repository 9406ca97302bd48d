#!/bin/sh
# Names of files in documents that no file has: documents.sh ROOT DOCUMENT...; silent if there is none.
#
# A name is `PATH` or a link's target. A path is below the document, the root or injector/ (CONTRIBUTING.md). A name
# without a folder may be anywhere.
set -eu
cd "$1"
shift
names='[A-Za-z0-9_-]\.(c|cc|h|hpp|md|bats|bash|sh|py|js|awk|json|txt|list)$'
folders='^(injector|jitdump|jitunwind|perfmap|tests|docs|examples|bench|dist)/'
all=$(find injector jitdump jitunwind perfmap tests docs examples bench dist -type f | sed 's|.*/||' | sort -u)
status=0
for document; do
    folder=$(dirname "$document")
    {
        sed '/^```/,/^```/d' "$document" | grep -oE '`[A-Za-z0-9_./-]+`' | tr -d '`' | grep -E "$names|$folders" || :
        sed '/^```/,/^```/d' "$document" | grep -oE '\]\([^)# ]+' | cut -c3- | grep -v '://' || :
    } | sort -u | {
        missing=0
        while read -r name; do
            [ -e "$folder/$name" ] || [ -e "$name" ] || [ -e "injector/$name" ] && continue
            case $name in
                */*) ;;
                *) printf '%s\n' "$all" | grep -qxF "$name" && continue ;;
            esac
            echo "$document: no file $name"
            missing=1
        done
        exit $missing
    } || status=1
done
exit $status
