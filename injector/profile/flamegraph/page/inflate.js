// The page's data is packed: JSON, in zlib's format, in base64. Old browsers have no DecompressionStream, and where there is one the page
// would be empty until it ends.
function unpackData(text) {
    const packed = atob(text.trim()), bytes = new Uint8Array(packed.length);
    for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
    return JSON.parse(new TextDecoder().decode(inflate(bytes, 2)));
}

// What is deflated (RFC 1951) in BYTES, from AT on.
function inflate(bytes, at) {
    let out = new Uint8Array(bytes.length * 4), end = 0, bits = 0, count = 0;
    const need = (wanted) => {
        for (; count < wanted; count += 8) bits |= bytes[at++] << count;
    };
    const take = (wanted) => {
        need(wanted);
        const value = bits & ((1 << wanted) - 1);
        bits >>>= wanted;
        count -= wanted;
        return value;
    };
    // A code has 15 bits at most, and fewer may follow at the end.
    const symbol = ({ table, longest }) => {
        need(longest);
        const entry = table[bits & ((1 << longest) - 1)];
        bits >>>= entry & 15;
        count -= entry & 15;
        return entry >> 4;
    };
    const room = (wanted) => {
        if (end + wanted <= out.length) return;
        const larger = new Uint8Array(Math.max(out.length * 2, end + wanted));
        larger.set(out.subarray(0, end));
        out = larger;
    };
    for (let isLast = 0; !isLast;) {
        isLast = take(1);
        const kind = take(2);
        if (kind === 0) {
            at -= count >> 3; // whole bytes that were read ahead
            bits = count = 0;
            const length = bytes[at] | bytes[at + 1] << 8;
            room(length);
            out.set(bytes.subarray(at + 4, at + 4 + length), end);
            at += 4 + length;
            end += length;
            continue;
        }
        const [letters, distances] = kind === 1 ? usualCodes() : readCodes(take, symbol);
        for (;;) {
            const letter = symbol(letters);
            if (letter === 256) break;
            if (at > bytes.length + 8) throw new Error("the page's data ends early");
            room(258);
            if (letter < 256) {
                out[end++] = letter;
                continue;
            }
            const length = lengthOf(letter - 257, take), from = end - distanceOf(symbol(distances), take);
            if (from < 0) throw new Error("the page's data is damaged");
            for (let i = 0; i < length; i++) out[end++] = out[from + i];
        }
    }
    return out.subarray(0, end);
}

// Lengths are 3 to 10, then groups of four with one more bit each; distances are 1 to 4, then groups of two.
function lengthOf(code, take) {
    if (code < 8) return code + 3;
    if (code === 28) return 258;
    const more = (code >> 2) - 1;
    return 3 + ((4 + (code & 3)) << more) + take(more);
}

function distanceOf(code, take) {
    if (code < 4) return code + 1;
    const more = (code >> 1) - 1;
    return 1 + ((2 + (code & 1)) << more) + take(more);
}

// A table of all that LONGEST bits may begin with: the symbol, and in the lowest four bits how many bits it has.
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
    return { table, longest };
}

function usualCodes() {
    return [codeTable(Array.from({ length: 288 }, (_, i) => i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8)), codeTable(Array(30).fill(5))];
}

function readCodes(take, symbol) {
    const letterCount = take(5) + 257, distanceCount = take(5) + 1, own = Array(19).fill(0), order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    for (let i = take(4) + 4, at = 0; at < i; at++) own[order[at]] = take(3);
    const table = codeTable(own), lengths = [];
    while (lengths.length < letterCount + distanceCount) {
        const code = symbol(table);
        if (code < 16) lengths.push(code);
        else {
            const again = code === 16 ? lengths[lengths.length - 1] : 0;
            for (let n = code === 16 ? 3 + take(2) : code === 17 ? 3 + take(3) : 11 + take(7); n; n--) lengths.push(again);
        }
    }
    return [codeTable(lengths.slice(0, letterCount)), codeTable(lengths.slice(letterCount))];
}
