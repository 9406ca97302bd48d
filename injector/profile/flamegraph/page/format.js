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
