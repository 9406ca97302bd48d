// The page's data is packed: JSON, in zlib's format, in base64. Old browsers have no DecompressionStream, and where there is one the page
// would be empty until it ends.
function unpackData(text) {
    const packed = atob(text.trim()), bytes = new Uint8Array(packed.length + 4); // what is read ahead is there
    for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
    return JSON.parse(new TextDecoder().decode(inflate(bytes, 2)));
}

// What is deflated (RFC 1951) in BYTES, from AT on.
function inflate(bytes, at) {
    const input = { bytes, at, bits: 0, count: 0, out: new Uint8Array(bytes.length * 4 + 258), end: 0 };
    for (let isLast = 0; !isLast;) {
        if (input.at > bytes.length) throw new Error("the page's data ends early");
        isLast = takeBits(input, 1);
        const kind = takeBits(input, 2);
        if (kind === 0) copyBlock(input);
        else unpackBlock(input, ...(kind === 1 ? usualCodes() : readCodes(input)));
    }
    return input.out.subarray(0, input.end);
}

function takeBits(input, wanted) {
    for (; input.count < wanted; input.count += 8) input.bits |= input.bytes[input.at++] << input.count;
    const value = input.bits & ((1 << wanted) - 1);
    input.bits >>= wanted;
    input.count -= wanted;
    return value;
}

function enlarged(out, wanted) {
    const larger = new Uint8Array(Math.max(out.length * 2, wanted));
    larger.set(out);
    return larger;
}

function copyBlock(input) {
    const { bytes } = input, at = input.at - (input.count >> 3), length = bytes[at] | bytes[at + 1] << 8; // whole bytes may be read ahead
    input.bits = input.count = 0;
    if (input.end + length > input.out.length) input.out = enlarged(input.out, input.end + length);
    input.out.set(bytes.subarray(at + 4, at + 4 + length), input.end);
    input.at = at + 4 + length;
    input.end += length;
}

// Letters, and copies of what is there. Nearly all time of unpacking is spent here, so that there are no calls.
function unpackBlock(input, letters, distances) {
    const { bytes } = input, lettersMask = letters.length - 1, distancesMask = distances.length - 1;
    let { at, bits, count, out, end } = input;
    for (;;) {
        if (count < 16) bits |= (bytes[at] | bytes[at + 1] << 8) << count, at += 2, count += 16;
        let entry = letters[bits & lettersMask];
        bits >>= entry & 15;
        count -= entry & 15;
        if (end + 258 > out.length) out = enlarged(out, 0);
        const letter = entry >> 4;
        if (letter < 256) {
            out[end++] = letter;
            if (at <= bytes.length) continue;
        }
        if (at > bytes.length) throw new Error("the page's data ends early");
        if (letter === 256) break;
        if (count < 16) bits |= (bytes[at] | bytes[at + 1] << 8) << count, at += 2, count += 16;
        // Lengths are 3 to 10, then groups of four with one more bit each; distances are 1 to 4, then groups of two.
        let length = letter - 254, more = letter === 285 ? 0 : Math.max(((letter - 257) >> 2) - 1, 0);
        if (letter === 285) length = 258;
        else if (more) length = 3 + ((4 + ((letter - 257) & 3)) << more) + (bits & ((1 << more) - 1));
        bits >>= more;
        count -= more;
        if (count < 16) bits |= (bytes[at] | bytes[at + 1] << 8) << count, at += 2, count += 16;
        entry = distances[bits & distancesMask];
        bits >>= entry & 15;
        count -= entry & 15;
        if (count < 16) bits |= (bytes[at] | bytes[at + 1] << 8) << count, at += 2, count += 16;
        more = Math.max((entry >> 5) - 1, 0);
        let from = end - (more ? 1 + ((2 + (entry >> 4 & 1)) << more) + (bits & ((1 << more) - 1)) : (entry >> 4) + 1);
        bits >>= more;
        count -= more;
        if (from < 0) throw new Error("the page's data is damaged");
        while (length--) out[end++] = out[from++];
    }
    Object.assign(input, { at, bits, count, out, end });
}

// A table of all that the bits of the longest code may be: the symbol, and in the lowest four bits how many bits it has.
function codeTable(lengths) {
    const longest = Math.max(...lengths), table = new Uint16Array(1 << longest);
    for (let length = 1, code = 0; length <= longest; length++, code <<= 1)
        lengths.forEach((own, symbol) => {
            if (own !== length) return;
            let reversed = 0;
            for (let bit = 0; bit < length; bit++) reversed |= (code >> bit & 1) << (length - 1 - bit);
            for (let i = reversed; i < table.length; i += 1 << length) table[i] = symbol << 4 | length;
            code++;
        });
    return table;
}

function usualCodes() {
    return [codeTable(Array.from({ length: 288 }, (_, i) => i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8)), codeTable(Array(30).fill(5))];
}

// The codes of a block stand at its begin, the lengths of their bits in a code of their own.
function readCodes(input) {
    const letterCount = takeBits(input, 5) + 257, distanceCount = takeBits(input, 5) + 1, count = takeBits(input, 4) + 4, lengths = [], own = Array(19).fill(0);
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15].slice(0, count).forEach((symbol) => { own[symbol] = takeBits(input, 3); });
    const table = codeTable(own);
    const take = () => {
        const ahead = { ...input }, entry = table[takeBits(ahead, 7) & (table.length - 1)];
        takeBits(input, entry & 15);
        return entry >> 4;
    };
    while (lengths.length < letterCount + distanceCount) {
        const code = take();
        if (code < 16) lengths.push(code);
        else {
            const again = code === 16 ? lengths[lengths.length - 1] : 0;
            for (let n = code === 16 ? 3 + takeBits(input, 2) : code === 17 ? 3 + takeBits(input, 3) : 11 + takeBits(input, 7); n; n--) lengths.push(again);
        }
    }
    return [codeTable(lengths.slice(0, letterCount)), codeTable(lengths.slice(letterCount))];
}
