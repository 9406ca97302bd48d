/* What in a function's name says which compiler made this code of it.
 *
 *     JS:*fib /a.js:1:2     V8: ~ is bytecode, ^ Sparkplug, + Maglev, * TurboFan
 *     fib [tier2]           and .NET's Fib()[OptimizedTier1]
 *     JSC-DFG: fib          JavaScriptCore, SpiderMonkey (Ion: fib)
 */
#ifndef PERFJIT_TIER_MARK_H
#define PERFJIT_TIER_MARK_H

#include <stddef.h>
#include <stdint.h>

struct tier_mark {
    uint32_t at, bytes; /* bytes 0: there is none */
};

struct tier_mark tier_mark_of(const char *name, size_t bytes);

enum { TIER_TEXT_BYTES = 32 };

/* Put what MARK in NAME says, "" if it is none, without brackets and spaces. */
void tier_mark_text(const char *name, struct tier_mark mark, char text[TIER_TEXT_BYTES]);

#endif
