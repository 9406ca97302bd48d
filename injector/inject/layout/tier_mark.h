/* The mark in a function's name that says which compiler made this code of it.
 *
 *     JS:*fib /a.js:1:2     V8: ~ is bytecode, ^ Sparkplug, + Maglev, * TurboFan
 *     JS:o*'fib /a.js:1:2   o: entered in the middle of a loop, ': for one closure alone
 *     fib [tier2]           and .NET's Fib()[OptimizedTier1]
 *     JSC-DFG: fib          JavaScriptCore, SpiderMonkey (Ion: fib)
 */
#ifndef PERFJIT_TIER_MARK_H
#define PERFJIT_TIER_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tier_mark {
    uint32_t at, bytes; /* bytes 0: there is none */
};

struct tier_mark tier_mark_of(const char *name, size_t bytes);

/* Whether it is V8's, behind which a name and a place follow. */
bool tier_mark_is_v8(struct tier_mark mark);

enum { TIER_TEXT_BYTES = 32 };

/* Put the text of MARK in NAME without brackets and spaces, "" if it has none. */
void tier_mark_text(const char *name, struct tier_mark mark, char text[TIER_TEXT_BYTES]);

#endif
