/* See x86_64_effect.h.  Source: Intel SDM, volume 2. */
#include "jitdump/instructions/x86_64_effect.h"

enum { REPNE = 0xf2, REPEAT = 0xf3 };

static const char effects_0[] = "eerraa..eerraa.." /* 00 */
                                "eerraa..eerraa.."
                                "eerraa..eerraa.." /* 20 */
                                "eerraa.........."
                                "................" /* 40 */
                                "****************"
                                "...r....*r*rssss" /* 60 */
                                "****************"
                                "****..**e*r*e*.*" /* 80 */
                                "OOOOOOOOad..**.a"
                                "aa..ssss..ssssss" /* a0 */
                                "oooooooooooooooo"
                                "ee**..ee*****a.*" /* c0 */
                                "eeee...aFFFFFFFF"
                                "****aa..**.*aa.." /* e0 */
                                ".*..*.**......e*";
static const char effects_1[] = "eqrr.*.*...*...." /* 00 */
                                ".E.E...E......*."
                                "ee.......E.Err.." /* 20 */
                                ".DDD**.q........"
                                "rrrrrrrrrrrrrrrr" /* 40 */
                                "r..............."
                                "................" /* 60 */
                                "........e.....*E"
                                "****************" /* 80 */
                                "eeeeeeeeeeeeeeee"
                                "**q.ee..**.eeeFr" /* a0 */
                                "kkrerrrrr.eerrrr"
                                "xx.E.r.koooooooo" /* c0 */
                                "......Er........"
                                ".......E........" /* e0 */
                                ".......F........";

/* Of SSE's instructions in their VEX and EVEX forms, and those that have no other. */
static char vector_effect_1(const struct x86_instruction *in)
{
    bool scalar = in->prefix == REPEAT || in->prefix == REPNE;
    switch (in->opcode) {
    case 0x2c:
    case 0x2d:
    case 0x78:
    case 0x79:
        return scalar ? 'r' : '.';
    case 0x50:
    case 0x93: /* kmov */
    case 0xc5:
    case 0xd7:
        return 'r';
    case 0x7e:
        return in->prefix == REPEAT ? '.' : 'e';
    case 0x11:
    case 0x13:
    case 0x17:
    case 0x29:
    case 0x2b:
    case 0x7f:
    case 0x91:
    case 0xd6:
    case 0xe7:
        return 'E';
    default:
        return '.';
    }
}

static char effect_2(const struct x86_instruction *in)
{
    if (in->encoding == X86_LEGACY)
        return in->opcode >= 0xf0 ? (in->opcode == 0xf8 ? 'F' : 'x') : '.';
    if (in->encoding == X86_VEX && in->opcode >= 0xf2 && in->opcode <= 0xf7)
        return 'v'; /* BMI */
    return 'E';     /* some store, and which ones matters little */
}

static char effect_3(const struct x86_instruction *in)
{
    if (in->opcode >= 0x14 && in->opcode <= 0x17)
        return 'e'; /* pextr, extractps */
    if (in->encoding == X86_LEGACY)
        return '.';
    return in->encoding == X86_VEX && in->opcode == 0xf0 ? 'r' : 'E'; /* rorx; vextract */
}

char jd_x86_effect(const struct x86_instruction *in)
{
    if (in->encoding == X86_XOP)
        return in->map == 8 ? '.' : 'v';
    switch (in->map) {
    case 0:
        return effects_0[in->opcode];
    case 1:
        return in->encoding == X86_LEGACY ? effects_1[in->opcode] : vector_effect_1(in);
    case 2:
        return effect_2(in);
    case 3:
        return effect_3(in);
    default: /* 5 and 6: 16-bit floating point */
        return in->map == 5 ? vector_effect_1(in) : '.';
    }
}
