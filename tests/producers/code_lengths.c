/* Whether the decoder of libjitdump takes each instruction to be as long as objdump does.
 *
 *     objdump -d -w --insn-width=15 FILE | code_lengths
 *
 * A line is ADDRESS:<tab>BYTES<tab>INSTRUCTION.
 *
 * Prints those that differ, up to 20, and "N instructions, M differ"; status 1 if any does.
 */
#include "jitdump/instructions/x86_64_decoder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 1024, SHOWN = 20 };

/* The bytes of LINE, and where its text is; 0: it is none of an instruction. */
static size_t read_line(const char *line, uint8_t *bytes, const char **text)
{
    size_t count = 0;
    const char *at = strchr(line, '\t');
    if (!at || at == line || at[-1] != ':')
        return 0;
    unsigned byte;
    int used;
    for (at++; count < X86_LONGEST_BYTES && sscanf(at, "%2x%n", &byte, &used) == 1 && used == 2;
         at += 3)
        bytes[count++] = (uint8_t)byte;
    *text = strchr(at, '\t');
    return *text ? count : 0;
}

/* What objdump shows apart though the processor does not take it so, or does not know itself. */
static bool is_odd(const char *text)
{
    static const char *const odd[] = {"(bad)", "data16", "rex",    ".byte", "fwait",
                                      "repz",  "repnz",  "addr32", "cs ",   "ds ",
                                      "ss ",   "es ",    "fs ",    "gs ",   "lock"};
    const char *word = text + strspn(text, "\t ");
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (strstr(word, odd[0]) || strncmp(word, odd[i], strlen(odd[i])) == 0)
            return true;
    return false;
}

int main(void)
{
    char line[LINE_BYTES];
    uint64_t count = 0, differ = 0;
    while (fgets(line, sizeof line, stdin)) {
        uint8_t bytes[X86_LONGEST_BYTES + 1] = {0};
        const char *text;
        size_t length = read_line(line, bytes, &text);
        struct x86_instruction instruction;
        if (!length)
            continue;
        bool known = jd_x86_decode(bytes, length, &instruction);
        count++;
        if ((known && instruction.length == length) || is_odd(text))
            continue;
        if (differ++ < SHOWN)
            printf("%u: %s", known ? instruction.length : 0u, line);
    }
    printf("%" PRIu64 " instructions, %" PRIu64 " differ\n", count, differ);
    return differ != 0;
}
