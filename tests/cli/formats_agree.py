#!/usr/bin/env python3
"""Whether all formats say the same of each function: formats_agree.py DIRECTORY SUM [perf.script]

DIRECTORY has what perfjit wrote of one recording: report.json, folded, speedscope, firefox, pprof (unpacked), callgrind, page.html.
Each format's own tables are read here, and each function's self and total time made of its stacks, recursion once.  SUM is that of
the samples' periods, by perf.  perf.script, of an injected recording of frame pointers (-F period,ip,sym,dso --no-inline), must
have the same of each function of JIT code.
"""
import base64
import collections
import json
import re
import string
import sys
import zlib

directory, wanted = sys.argv[1], int(sys.argv[2])


def text(name):
    with open(directory + "/" + name, encoding="utf-8") as file:
        return file.read()


def count(stacks):
    """STACKS are pairs: functions, the outermost first, and what they weigh."""
    all_of_it, itself, total = 0, collections.Counter(), collections.Counter()
    for stack, weight in stacks:
        all_of_it += weight
        if stack:
            itself[stack[-1]] += weight
        for function in set(stack):
            total[function] += weight
    return all_of_it, itself, total


# ---- Stacks by function: name, file or module, line ----


def speedscope():
    profile = json.loads(text("speedscope"))
    functions = [(frame["name"], frame["file"], frame.get("line", 0)) for frame in profile["shared"]["frames"]]
    for thread in profile["profiles"]:
        for stack, weight in zip(thread["samples"], thread["weights"]):
            yield [functions[number] for number in stack], weight


def firefox_stack(thread, stack):
    functions, strings, found = thread["funcTable"], thread["stringArray"], []
    while stack is not None:
        number = thread["frameTable"]["func"][thread["stackTable"]["frame"][stack]]
        file, resource = functions["fileName"][number], functions["resource"][number]
        if file is None and resource >= 0:
            file = thread["resourceTable"]["name"][resource]
        found.append((strings[functions["name"][number]], "" if file is None else strings[file], functions["lineNumber"][number] or 0))
        stack = thread["stackTable"]["prefix"][stack]
    return found[::-1]


def firefox():
    for thread in json.loads(text("firefox"))["threads"]:
        samples = thread["samples"]
        is_time = samples["weightType"] == "tracing-ms"
        for stack, weight in zip(samples["stack"], samples["weight"]):
            yield firefox_stack(thread, stack), round(weight * 1e6) if is_time else weight


# Digits of five bits, the lowest first, and 32 more in each that another one follows.
def node_numbers(column):
    digits = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
    number = shift = 0
    for digit in map(digits.index, column):
        number, shift = number | (digit & 31) << shift, shift + 5
        if digit < 32:
            yield number
            number = shift = 0


def page():
    html = text("page.html")
    start = html.index('id="data">') + len('id="data">')
    data = json.loads(zlib.decompress(base64.b64decode(html[start : html.index("</script>", start)])))
    strings, frames = data["strings"], data["frames"]
    nodes = {name: list(node_numbers(column)) for name, column in data["nodes"].items()}
    columns = zip(frames["name"], frames["file"], frames["module"], frames["line"])
    functions = [(strings[name], strings[file] or strings[module], line) for name, file, module, line in columns]
    for node, weight in zip(data["samples"]["node"], data["samples"]["weight"]):
        found = []
        while node:
            found.append(functions[nodes["frame"][node]])
            node -= nodes["parent"][node]
        yield found[::-1], weight


# ---- pprof: fields of a message ----


def varint(message, at):
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(message):
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        value, at = varint(message, at)
        if tag & 7 == 2:
            value, at = message[at : at + value], at + value
        yield tag >> 3, value


def numbers(message):
    at, found = 0, []
    while at < len(message):
        value, at = varint(message, at)
        found.append(value)
    return found


def pprof():
    """pprof knows a function's module by its mapping alone: by name and line."""
    with open(directory + "/pprof", "rb") as file:
        message = list(fields(file.read()))
    strings = [value.decode() for field, value in message if field == 6]
    functions = {}
    for one in (dict(fields(value)) for field, value in message if field == 5):
        functions[one[1]] = (strings[one.get(2, 0)], one.get(5, 0))
    locations = {}
    for parts in (list(fields(value)) for field, value in message if field == 4):
        locations[dict(parts)[1]] = [functions[dict(fields(line))[1]] for field, line in parts if field == 4]
    for sample in (dict(fields(value)) for field, value in message if field == 2):
        stack = [function for location in numbers(sample.get(1, b"")) for function in locations[location]]
        yield stack[::-1], numbers(sample[2])[1]


# ---- By name ----


def folded():
    for line in text("folded").splitlines():
        stack, weight = line.rsplit(" ", 1)
        yield [re.sub(r"_\[[jki]\]$", "", name) for name in stack.split(";")[1:]], int(weight)


def callgrind():
    """By number: a function's inclusive cost is its own and its calls'."""
    names, itself, total = {}, collections.Counter(), collections.Counter()
    of_call, now, all_of_it = False, None, None
    for line in text("callgrind").splitlines():
        function = re.match(r"(c?)fn=\((\d+)\)(?: (.*))?$", line)
        if function:
            names.setdefault(function[2], function[3])
            now = now if function[1] else function[2]
        elif line.startswith("calls="):
            of_call = True
        elif line.startswith("totals: "):
            all_of_it = int(line.split()[1])
        elif re.match(r"\d+ \d+$", line):
            cost = int(line.split()[1])
            total[names[now]] += cost
            itself[names[now]] += 0 if of_call else cost
            of_call = False
    return all_of_it, itself, total


def perf_name(symbol):
    symbol = re.sub(r"^JS:[~^+*]?", "", re.sub(r"@@?[A-Z]+_[0-9.]+$", "", symbol))
    return re.sub(r" \[tier[12]\]$", "", re.sub(r" [^ ]*:\d+:\d+$", "", symbol)) or "(anonymous)"


def perf(path, jit):
    """perf's stacks; the names of JIT code are added to JIT."""
    with open(path, encoding="utf-8") as file:
        blocks = file.read().split("\n\n")
    for block in (block.strip("\n").split("\n") for block in blocks):
        if not block[0].strip():
            continue
        frames = [re.match(r"\s+[0-9a-f]+ (.*) \((.*)\)$", line) for line in block[1:]]
        stack = [perf_name(frame[1]) for frame in frames if frame]
        jit.update(perf_name(frame[1]) for frame in frames if frame and ".dso/" in frame[2])
        yield stack[::-1], int(block[0].split()[0])


# ---- All of them ----


def compare(what, got, expected, functions=None, whole=None):
    """FUNCTIONS, or all; the total times of WHOLE, or of these."""
    functions = set(got[1]) | set(expected[1]) | set(got[2]) | set(expected[2]) if functions is None else functions
    pairs = ("self", got[1], expected[1], functions), ("total", got[2], expected[2], functions if whole is None else whole)
    for title, one, other, chosen in pairs:
        for function in chosen:
            if one[function] != other[function]:
                sys.exit(f"{directory}: {what}: {title} of {function} is {one[function]}, elsewhere {other[function]}")


def by(stacks, key):
    return count(([key(function) for function in stack], weight) for stack, weight in stacks)


report = json.loads(text("report.json"))
rows = [((row["name"], row["file"] or row["module"], row["line"] or 0), row) for row in report["functions"]]
of_report = (report["total"], collections.Counter(), collections.Counter())
named = (collections.Counter(), collections.Counter())
for function, row in rows:
    of_report[1][function] += row["self"]
    of_report[2][function] += row["total"]
    named[0][function[0]] += row["self"]
    named[1][function[0]] += row["total"]
# One of two modules, as libc's and the loader's mmap, is two rows; formats that tell no module where they tell a file have one.
single = [function for function, count_of in collections.Counter(function for function, _ in rows).items() if count_of == 1]
results = {"report": of_report}
for form in speedscope, firefox, page:
    results[form.__name__] = count(form())
    compare(form.__name__, results[form.__name__], of_report, whole=single)
results["pprof"] = count(pprof())
compare("pprof", results["pprof"], by(speedscope(), lambda function: (function[0], function[2])))
results["folded"] = count(folded())
compare("folded", results["folded"], by(speedscope(), lambda function: function[0].replace(";", ":")))
results["callgrind"] = callgrind()
compare("callgrind", results["callgrind"], (0, *named))
for form, result in results.items():
    if result[0] != wanted:
        sys.exit(f"{directory}: {form}: all of it is {result[0]}, of perf {wanted}")
told = f"{len(rows)} functions"
if len(sys.argv) > 3:
    jit = set()
    of_perf = count(perf(sys.argv[3], jit))
    jit.discard("[unknown]")
    compare("perf script", of_perf, by(speedscope(), lambda function: function[0]), jit)
    if not jit:
        sys.exit(f"{directory}: perf names no JIT code")
    told += f", {len(jit)} as perf has them"
print(told)
