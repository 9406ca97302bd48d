/* See x86_64_decoder.h. */
#include "jitdump/instructions/x86_64_decoder.h"

#include "jitdump/format/byte_cursor.h"

/* The bytes that follow each opcode:
 *
 *     -  nothing      m  ModRM           b  8 bits       z  16 or 32 bits, by the operand's size
 *     w  16 bits      j  32 bits         e  16 and 8     v  16, 32, or 64 bits
 *     o  an address   M  ModRM, b        Z  ModRM, z     u  ModRM, and for the first two in its
 *                                                           group b or z
 * and a space where there is none, or a prefix. */
static const char map_0[] = "mmmmbz  mmmmbz  " /* 00 */
                            "mmmmbz  mmmmbz  "
                            "mmmmbz  mmmmbz  " /* 20 */
                            "mmmmbz  mmmmbz  "
                            "                " /* 40 */
                            "----------------"
                            "   m    zZbM----" /* 60 */
                            "bbbbbbbbbbbbbbbb"
                            "MZ Mmmmmmmmmmmmm" /* 80 */
                            "---------- -----"
                            "oooo----bz------" /* a0 */
                            "bbbbbbbbvvvvvvvv"
                            "MMw-  MZe-w--b -" /* c0 */
                            "mmmm   -mmmmmmmm"
                            "bbbbbbbbjj b----" /* e0 */
                            " -  --uu------mm";
static const char map_1[] = "mmmm ----- - m-M" /* 00 */
                            "mmmmmmmmmmmmmmmm"
                            "mmmm    mmmmmmmm" /* 20 */
                            "------ -        "
                            "mmmmmmmmmmmmmmmm" /* 40 */
                            "mmmmmmmmmmmmmmmm"
                            "mmmmmmmmmmmmmmmm" /* 60 */
                            "MMMMmmm-mmmmmmmm"
                            "jjjjjjjjjjjjjjjj" /* 80 */
                            "mmmmmmmmmmmmmmmm"
                            "---mMmmm---mMmmm" /* a0 */
                            "mmmmmmmmmmMmmmmm"
                            "mmMmMMMm--------" /* c0 */
                            "mmmmmmmmmmmmmmmm"
                            "mmmmmmmmmmmmmmmm" /* e0 */
                            "mmmmmmmmmmmmmmmm";

enum {
    OPERAND_SIZE = 0x66,
    ADDRESS_SIZE = 0x67,
    REPNE = 0xf2,
    REPEAT = 0xf3,
    EXTRQ = 0x78,
    VEX_3 = 0xc4,
    VEX_2 = 0xc5,
    EVEX = 0x62,
    POP_OR_XOP = 0x8f,
    REGISTER_MODE = 3,
};

struct decoder {
    struct byte_cursor cursor;
    struct x86_instruction *out;
    bool address_32;
    uint8_t rex_r, rex_x, rex_b; /* 8 or 0 */
};

static uint8_t peek(const struct decoder *decoder, size_t ahead)
{
    return ahead < cursor_left(&decoder->cursor)
               ? decoder->cursor.data[decoder->cursor.offset + ahead]
               : 0;
}

/* Whether BYTE is a legacy prefix. */
static bool take_prefix(struct decoder *decoder, uint8_t byte)
{
    switch (byte) {
    case OPERAND_SIZE:
        decoder->out->operand_16 = true;
        if (decoder->out->prefix == 0)
            decoder->out->prefix = byte;
        return true;
    case REPNE:
    case REPEAT:
        decoder->out->prefix = byte;
        return true;
    case ADDRESS_SIZE:
        decoder->address_32 = true;
        return true;
    default:
        return byte == 0xf0 || byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x26 ||
               byte == 0x64 || byte == 0x65;
    }
}

static void take_prefixes(struct decoder *decoder)
{
    while (cursor_left(&decoder->cursor) && take_prefix(decoder, peek(decoder, 0)))
        cursor_skip(&decoder->cursor, 1);
    uint8_t rex = peek(decoder, 0);
    if ((rex & 0xf0) != 0x40)
        return;
    cursor_skip(&decoder->cursor, 1);
    decoder->out->has_rex = true;
    decoder->out->wide = rex & 8;
    decoder->rex_r = (uint8_t)(rex << 1 & 8);
    decoder->rex_x = (uint8_t)(rex << 2 & 8);
    decoder->rex_b = (uint8_t)(rex << 3 & 8);
}

/* The prefix that VEX writes in two bits. */
static uint8_t prefix_of(uint8_t pp)
{
    static const uint8_t prefixes[4] = {0, OPERAND_SIZE, REPEAT, REPNE};
    return prefixes[pp & 3];
}

/* The byte with W, vvvv, L and pp, of VEX and XOP. */
static void take_vex_tail(struct decoder *decoder, uint8_t byte)
{
    decoder->out->vvvv = (uint8_t)(~byte >> 3 & 15);
    decoder->out->prefix = prefix_of(byte);
    decoder->out->vector_bytes = byte & 4 ? 32 : 16;
}

/* The bits R, X and B are stored inverted. */
static void take_rxb(struct decoder *decoder, uint8_t byte)
{
    decoder->rex_r = (uint8_t)(~byte >> 4 & 8);
    decoder->rex_x = (uint8_t)(~byte >> 3 & 8);
    decoder->rex_b = (uint8_t)(~byte >> 2 & 8);
}

static bool take_vex(struct decoder *decoder, uint8_t first, uint8_t encoding)
{
    decoder->out->encoding = encoding;
    uint8_t byte = cursor_u8(&decoder->cursor);
    decoder->out->map = 1;
    decoder->rex_r = (uint8_t)(~byte >> 4 & 8);
    if (first != VEX_2) {
        take_rxb(decoder, byte);
        decoder->out->map = byte & 31;
        byte = cursor_u8(&decoder->cursor);
        decoder->out->wide = byte & 0x80;
    }
    take_vex_tail(decoder, byte);
    decoder->out->opcode = cursor_u8(&decoder->cursor);
    return encoding == X86_XOP ? decoder->out->map >= 8 && decoder->out->map <= 10
                               : decoder->out->map >= 1 && decoder->out->map <= 3;
}

static bool take_evex(struct decoder *decoder)
{
    static const uint8_t sizes[4] = {16, 32, 64, 64};
    uint8_t first = cursor_u8(&decoder->cursor), second = cursor_u8(&decoder->cursor);
    uint8_t third = cursor_u8(&decoder->cursor);
    decoder->out->encoding = X86_EVEX;
    decoder->out->map = first & 7;
    take_rxb(decoder, first);
    decoder->rex_r |= (uint8_t)(~first & 16);
    decoder->out->wide = second & 0x80;
    take_vex_tail(decoder, second);
    decoder->out->vector_bytes = sizes[third >> 5 & 3];
    decoder->out->opcode = cursor_u8(&decoder->cursor);
    return (first & 8) == 0 && second & 4 && decoder->out->map != 0 && decoder->out->map != 4 &&
           decoder->out->map != 7;
}

/* The opcode with its map. */
static bool take_opcode(struct decoder *decoder)
{
    uint8_t byte = cursor_u8(&decoder->cursor);
    if (byte == VEX_2 || byte == VEX_3)
        return take_vex(decoder, byte, X86_VEX);
    if (byte == EVEX)
        return take_evex(decoder);
    if (byte == POP_OR_XOP && (peek(decoder, 0) & 31) >= 8)
        return take_vex(decoder, byte, X86_XOP);
    if (byte == 0x0f) {
        decoder->out->map = 1;
        byte = cursor_u8(&decoder->cursor);
        if (byte == 0x38 || byte == 0x3a) {
            decoder->out->map = byte == 0x38 ? 2 : 3;
            byte = cursor_u8(&decoder->cursor);
        }
    }
    decoder->out->opcode = byte;
    decoder->out->opcode_register = (byte & 7) | decoder->rex_b;
    return true;
}

/* The bytes that follow the opcode, as above. */
static char form_of(const struct x86_instruction *out)
{
    if (out->encoding == X86_XOP)
        return out->map == 8 ? 'M' : out->map == 9 ? 'm' : 'J';
    switch (out->map) {
    case 0:
        return map_0[out->opcode];
    case 1:
        if (out->encoding == X86_EVEX && map_1[out->opcode] == ' ')
            return 'm';
        if (out->encoding != X86_LEGACY && (out->opcode & 0xf0) == 0x90)
            return 'm';
        return map_1[out->opcode];
    case 3:
        return 'M';
    default:
        return 'm';
    }
}

static void take_displacement(struct decoder *decoder, size_t bytes)
{
    if (bytes == 1)
        decoder->out->displacement = (int8_t)cursor_u8(&decoder->cursor);
    else if (bytes == 4)
        decoder->out->displacement = (int32_t)cursor_u32(&decoder->cursor);
}

static void take_memory(struct decoder *decoder, uint8_t rm)
{
    enum { SIB = 4, NO_BASE = 5, NO_INDEX = 4 };
    struct x86_instruction *out = decoder->out;
    size_t bytes = out->mode == 1 ? 1 : out->mode == 2 ? 4 : 0;
    uint8_t low = rm;
    out->base = rm | decoder->rex_b;
    if (rm == SIB) {
        uint8_t sib = cursor_u8(&decoder->cursor);
        uint8_t index = (sib >> 3 & 7) | decoder->rex_x;
        out->index = index == NO_INDEX ? X86_NO_REGISTER : index;
        low = sib & 7;
        out->base = low | decoder->rex_b;
    }
    if (low == NO_BASE && out->mode == 0) {
        out->base = X86_NO_REGISTER;
        out->based_on_rip = rm != SIB;
        bytes = 4;
    }
    take_displacement(decoder, bytes);
    if (decoder->address_32) /* half of a register is no address in the frame */
        out->base = out->base == X86_NO_REGISTER ? X86_NO_REGISTER : 16;
}

static void take_modrm(struct decoder *decoder)
{
    struct x86_instruction *out = decoder->out;
    uint8_t modrm = cursor_u8(&decoder->cursor);
    out->has_modrm = true;
    out->mode = modrm >> 6;
    out->reg = (modrm >> 3 & 7) | decoder->rex_r;
    out->rm = (modrm & 7) | decoder->rex_b;
    bool control = out->map == 1 && out->encoding == X86_LEGACY && out->opcode >= 0x20 &&
                   out->opcode <= 0x23; /* these have registers alone, whatever the mode is */
    if (control)
        out->mode = REGISTER_MODE;
    if (out->mode != REGISTER_MODE)
        take_memory(decoder, modrm & 7);
}

static void take_immediate(struct decoder *decoder, size_t bytes)
{
    switch (bytes) {
    case 1:
        decoder->out->immediate = (int8_t)cursor_u8(&decoder->cursor);
        break;
    case 2:
        decoder->out->immediate = (int16_t)cursor_u16(&decoder->cursor);
        break;
    case 4:
        decoder->out->immediate = (int32_t)cursor_u32(&decoder->cursor);
        break;
    case 8:
        decoder->out->immediate = (int64_t)cursor_u64(&decoder->cursor);
        break;
    default:
        break;
    }
}

/* By the operand's size. */
static size_t immediate_bytes(const struct x86_instruction *out)
{
    return out->operand_16 && !out->wide ? 2 : 4;
}

static void take_group_3(struct decoder *decoder)
{
    take_modrm(decoder);
    if ((decoder->out->reg & 6) == 0)
        take_immediate(decoder, decoder->out->opcode & 1 ? immediate_bytes(decoder->out) : 1);
}

/* The bytes that follow an opcode of FORM. */
static bool take_rest(struct decoder *decoder, char form)
{
    struct x86_instruction *out = decoder->out;
    switch (form) {
    case '-':
        break;
    case 'u':
        take_group_3(decoder);
        break;
    case 'm':
    case 'M':
    case 'Z':
    case 'J':
        take_modrm(decoder);
        take_immediate(decoder, form == 'm'   ? 0
                                : form == 'M' ? 1
                                : form == 'Z' ? immediate_bytes(out)
                                              : 4);
        break;
    case 'b':
        take_immediate(decoder, 1);
        break;
    case 'z':
        take_immediate(decoder, immediate_bytes(out));
        break;
    case 'w':
    case 'e':
        take_immediate(decoder, 2);
        cursor_skip(&decoder->cursor, form == 'e');
        break;
    case 'j':
        take_immediate(decoder, 4);
        break;
    case 'v':
        take_immediate(decoder, out->wide ? 8 : immediate_bytes(out));
        break;
    case 'o':
        cursor_skip(&decoder->cursor, decoder->address_32 ? 4 : 8);
        break;
    default:
        return false;
    }
    return true;
}

/* SSE4a's two instructions with two immediates. */
static void take_sse4a(struct decoder *decoder)
{
    const struct x86_instruction *out = decoder->out;
    if (out->encoding == X86_LEGACY && out->map == 1 && out->opcode == EXTRQ && out->prefix &&
        out->prefix != REPEAT)
        cursor_skip(&decoder->cursor, 2);
}

bool jd_x86_decode(const uint8_t *code, size_t size, struct x86_instruction *instruction)
{
    *instruction = (struct x86_instruction){.base = X86_NO_REGISTER, .index = X86_NO_REGISTER};
    struct decoder decoder = {
        byte_cursor_over(code, size < X86_LONGEST_BYTES ? size : X86_LONGEST_BYTES, false),
        instruction,
        false,
        0,
        0,
        0};
    take_prefixes(&decoder);
    if (!take_opcode(&decoder) || !take_rest(&decoder, form_of(instruction)))
        return false;
    take_sse4a(&decoder);
    instruction->length = (uint8_t)decoder.cursor.offset;
    return !decoder.cursor.failed;
}
