/* The mark in a function's name that says which compiler made this code of it.
 *
 *     JS:*fib /a.js:1:2     V8: ~ is bytecode, ^ Sparkplug, + Maglev, * TurboFan
 *     JS:o*'fib /a.js:1:2   o: entered in the middle of a loop, ': for one closure alone
 *     fib [tier2]           and .NET's Fib()[OptimizedTier1]
 *     JSC-DFG: fib          JavaScriptCore, SpiderMonkey (Ion: fib)
 *     JS:fib-3-liftoff      V8's WebAssembly: function 3 of its module, which is called fib
 *
 * All that is known of how runtimes write tiers into names is here.
 */
#ifndef PERFJIT_TIER_MARK_H
#define PERFJIT_TIER_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tier_form {
    TIER_IS_NONE,
    TIER_IN_FRONT,  /* and the name behind it */
    TIER_BEHIND,    /* the name */
    TIER_OF_V8,     /* in front of a name and its place */
    TIER_OF_V8_WASM /* behind a name and its number */
};

struct tier_mark {
    uint32_t at, bytes; /* bytes 0: there is none */
    enum tier_form form;
};

struct tier_mark tier_mark_of(const char *name, size_t bytes);

/* Whether TEXT, a mark's, is that of an interpreter. */
bool tier_is_interpreter(const char *text);

/* How much a compiler has done for code of the tier TEXT: 0 is an interpreter.  -1: it is not
 * known. */
int tier_rank(const char *text);

/* The bytes of NAME that are the function's own, without MARK, the text in front of V8's, and the
 * number in a module.  *START is where they begin. */
size_t tier_mark_own_name(const char *name, size_t bytes, struct tier_mark mark,
                          const char **start);

enum { TIER_TEXT_BYTES = 32 };

/* Put the text of MARK in NAME without brackets and spaces, "" if it has none. */
void tier_mark_text(const char *name, struct tier_mark mark, char text[TIER_TEXT_BYTES]);

#endif
