// Numbers as people read them.
function amount(profile, value) {
    if (profile.unit === "ns") {
        if (value >= 1e9) return (value / 1e9).toFixed(3) + " s";
        if (value >= 1e6) return (value / 1e6).toFixed(2) + " ms";
        return (value / 1e3).toFixed(1) + " µs";
    }
    return value.toLocaleString("en") + " " + profile.unit;
}

function percent(part, all) {
    return (all ? 100 * part / all : 0).toFixed(2) + " %";
}

// NAME as at most LETTERS: what is in front goes first: a return type, namespaces, packages; then the arguments; then the class; then the end.
function shortName(name, letters) {
    if (name.length <= letters) return name;
    const { begin, parts, open } = nameParts(name);
    const arguments_ = open < 0 ? "" : name.slice(open), all = [begin, ...parts], tails = [arguments_, arguments_ ? "(…)" : ""];
    for (const starts of [all.slice(0, -1), all.slice(-1)]) for (const tail of tails) // the last name alone says less than its class does
        for (const part of starts) {
            const text = name.slice(part, open < 0 ? undefined : open) + tail;
            if (text.length <= letters) return text;
        }
    const last = name.slice(parts.length ? parts[parts.length - 1] : begin);
    return last.length <= letters ? last : last.slice(0, letters - 1) + "…";
}

// Where NAME begins behind its return type, where its parts begin, and where its arguments do (-1: it has none). What is in brackets
// is one part.
function nameParts(name) {
    const parts = [];
    let begin = 0, open = -1, depth = 0;
    for (let i = 0; i < name.length; i++) {
        const letter = name[i];
        if (name.startsWith("operator", i) && !/[\w$]/.test(name[i - 1] || " ")) { // what follows is its name, brackets too
            const arguments_ = name.indexOf("(", i + (name.startsWith("operator()", i) ? 10 : 8));
            return { begin, parts, open: arguments_ };
        }
        if (letter === "(" && !depth && i > begin && name.startsWith("(anonymous", i) === false && /[\w$>~\]]/.test(name[i - 1])) {
            open = i;
            break;
        }
        if ("<([{".includes(letter)) depth++;
        else if (">)]}".includes(letter)) depth = Math.max(depth - 1, 0);
        else if (depth) continue;
        else if (letter === " " && i + 1 < name.length && /[\w$~(]/.test(name[i + 1]) && name.includes("(", i)) {
            begin = i + 1;
            parts.length = 0;
        } else if (letter === ":" && name[i + 1] === ":" && i + 2 < name.length) parts.push(++i + 1);
        else if ((letter === "." || letter === "/" || (letter === ":" && name[i + 1] !== ":")) && i > 0 && /[\w$]/.test(name[i + 1] || "") && !/\d/.test(name[i + 1])) parts.push(i + 1);
    }
    return { begin, parts, open };
}
