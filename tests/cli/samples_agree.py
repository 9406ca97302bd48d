#!/usr/bin/env python3
"""samples_agree.py CALLS CHILDREN SECTION PROFILE REPORT HIDDEN WHAT FOLDER...: whether perfjit has perf's stacks, and self and total
of each function.

CALLS and CHILDREN are perf report's, --no-children -g folded,0,caller,function and --children -g none.  SECTION is the event's number
there.  PROFILE and REPORT are perfjit's for this event: export -f firefox and report --json.  All add up the same: periods or samples.
HIDDEN is what of it is of guests, which perf does not show.  The FOLDERs have the programs and libraries that were stored.

WHAT is `stacks`; `self` where the chains differ: perf unwinds them itself, or a stack is no stack; `rows` where there are none: then
perf counts an inlined call for the function that it is in.  CALLS is perf's without -g then.

perf has a row for each tier, and none for the kernel's functions here: it has the list of another kernel.  What nothing names is
an address in perf.  Where the innermost function of the chain is not that of the sample's own address, perf shows the latter in
the row and the former in the chain: both are in perfjit's stack.  An inlined call of JIT code is a frame in perf's chain
(perfjit inject --inlines frames), and its row is that of the function around it."""
import collections
import json
import os
import os
import re
import sys

# Rows in which perf and perfjit differ, and why.
#
# Of the C library's gaps, of data, whose names the file DATA_NAMES has, and of a function's first byte, perf's names and perfjit's
# differ: no code that calls is there, and such a frame is what a function without a frame pointer left in the register.  The vDSO is
# this machine's or unknown.  perf calls an entry of a PLT that it can't name @plt, and perf 6.12 offset_0x8500@plt.
NOT_THERE = {'_GLOBAL__sub_I_eh_alloc.cc', '__fini_array_end', '__do_global_dtors_aux', 'register_tm_clones', '__vdso_clock_gettime', '@plt',
             *open(os.environ['DATA_NAMES']).read().split()}
# The code of producers/process_lives calls nothing.  As a caller it is a pointer to its first byte, that the C library left in rbp:
# perf gives this byte's name, and perfjit the name of the byte in front, where a call would be.  So is _start, the program's entry,
# while a static program begins.
NO_CALLER = re.compile(r'flipped \d+|_start')

TIER = re.compile(r' \[(tier\d+|stub|interpreted)\]$')
INLINED = ' (inlined)'
PLACE = re.compile(r' (/|file:|node:|wasm:)[^ ]*:\d+(:\d+)?$')
TIER_BEFORE = re.compile(r"^((JS|Eval|Script|LazyCompile|Function):[~*^+']*|JSC-\w+: )")
PYTHON_PLACE = re.compile(r'^py::(.+):(/.*|<[^<>]*>)$')
LUAJIT_TRACE = re.compile(r'(TRACE \d+) .*')


def plain(name):
    """Without what perfjit has in fields of their own."""
    name = TIER.sub('', name.strip().removesuffix(INLINED))
    name = re.sub(r'^\[(.)\] ', '', name)
    if re.fullmatch(r'(0x)?f{4}[0-9a-f]{12}', name) or name in ('[kernel]', '[hypervisor]'):
        return '[kernel]'
    if name in NOT_THERE or re.fullmatch(r'0|(0x)?[0-9a-f]{16}|0x[0-9a-f]+|offset_0x[0-9a-f]+@plt', name):
        return '[unknown]'
    name = TIER_BEFORE.sub('', PLACE.sub('', PYTHON_PLACE.sub(r'\1', name))) or '(anonymous)'
    return LUAJIT_TRACE.sub(r'\1', name)


def as_callers(stack):
    """Without what is no caller, to which a word that looks like an address of the kernel belongs, below code of the program."""
    users = len(stack)
    while users and stack[users - 1] == '[kernel]':
        users -= 1
    return tuple('[unknown]' if at + 1 < len(stack) and NO_CALLER.fullmatch(name) or at < users and name == '[kernel]' else name
                 for at, name in enumerate(stack))


def sections(path):
    """Each line with the number of its event."""
    section = -1
    for line in open(path, errors='replace'):
        section += line.startswith('# Samples')
        yield section, line


def perf_stacks(path, wanted):
    """What each stack weighs, the outermost function first."""
    stacks, row, left = collections.Counter(), None, 0
    for section, line in sections(path):
        head = re.match(r' +[\d.]+% +(\d+) +(\[.\] .*)', line)
        calls = re.match(r'(\d+) (.*)', line)
        if section != wanted:
            continue
        if head:
            stacks[(row,)] += left
            row, left = plain(head[2]), int(head[1])
        elif calls:
            names = calls[2].split(';')
            stack = [plain(name) for name in names]
            if stack[-1] != row and not names[-1].endswith(INLINED):
                stack.append(row)
            stacks[as_callers(tuple(stack))] += int(calls[1])
            left -= int(calls[1])
    stacks[(row,)] += left
    return +stacks


def children(path, wanted):
    """Of functions that have one row: their total, in percent."""
    found = collections.defaultdict(list)
    for section, line in sections(path):
        row = re.match(r' +([\d.]+)% +(\[.\] .*)', line)
        if row and section == wanted:
            found[plain(row[2])].append(float(row[1]))
    return {name: rows[0] for name, rows in found.items() if len(rows) == 1}


def row_name(name, kind, module, files):
    """As perf has it, which has names of stored files alone: perfjit finds those of this machine's files by their build-ids."""
    if kind == 'kernel':
        return '[kernel]'
    return '[unknown]' if kind.startswith('native') and module not in files else plain(name)


def own_stacks(path, files):
    """Of each stack: frames, each a name and whether it is inlined, and by whom; and what the stack weighs."""
    profile = json.load(open(path))
    kinds = [category['name'] for category in profile['meta']['categories']]
    for thread in profile['threads']:
        strings, functions, frames, table = (thread[name] for name in ('stringArray', 'funcTable', 'frameTable', 'stackTable'))
        is_time = thread['samples']['weightType'] == 'tracing-ms'
        own = []
        for function, category, depth in zip(frames['func'], frames['category'], frames['inlineDepth']):
            resource = functions['resource'][function]
            module = '' if resource < 0 else strings[thread['resourceTable']['name'][resource]]
            own.append((row_name(strings[functions['name'][function]], kinds[category], module, files), depth and kinds[category]))
        for stack, weight in zip(thread['samples']['stack'], thread['samples']['weight']):
            found = []
            while stack is not None:
                found.append(own[table['frame'][stack]])
                stack = table['prefix'][stack]
            yield found[::-1], round(weight * 1e6) if is_time else weight


def without(stacks, is_left_out, callers=True):
    """The stacks and what is of guests."""
    found, hidden = collections.Counter(), 0
    for frames, weight in stacks:
        if frames[-1][0].startswith('[guest'):
            hidden += weight
        else:
            stack = tuple(name for name, inlined in frames if not is_left_out(inlined))
            found[as_callers(stack) if callers else stack] += weight
    return found, hidden


def sums(stacks):
    self, total = collections.Counter(), collections.Counter()
    for stack, weight in stacks.items():
        self[stack[-1]] += weight
        for name in set(stack):
            total[name] += weight
    return self, total


def differences(what, ours, theirs):
    return [f'{what} {name}: {ours[name]}, not {theirs[name]}' for name in sorted({*ours, *theirs}, key=str)
            if ours[name] != theirs[name]]


def report_differs(report, stacks, files):
    """The report's rows have what the stacks have."""
    rows, self, total = collections.Counter(), collections.Counter(), collections.Counter()
    for row in report['functions']:
        name = row_name(row['name'], row['kind'], row['module'], files)
        if not name.startswith('[guest'):
            rows[name] += 1
            self[name] += row['self']
            total[name] += row['total']
    of_stacks, total_of_stacks = sums(stacks)
    for name in {'[kernel]', '[unknown]', *(name for name in rows if rows[name] > 1)}:  # one stack may have several of its rows
        del total[name], total_of_stacks[name]
    return differences('report: self of', self, of_stacks) + differences('report: total of', total, total_of_stacks)


def is_elf(path):
    return os.path.isfile(path) and open(path, 'rb').read(4) == b'\x7fELF'


def main():
    calls, with_children, section, profile, report, expected, what, *folders = sys.argv[1:]
    files = {name for folder in folders for at, _, names in os.walk(folder) for name in names if is_elf(os.path.join(at, name))}
    perfs, own, report = perf_stacks(calls, int(section)), list(own_stacks(profile, files)), json.load(open(report))
    wrong = report_differs(report, without(own, lambda inlined: False, callers=False)[0], files)
    # Inlined calls of programs are left to perf, which was not asked for them.
    stacks, hidden = without(own, lambda inlined: inlined == 'native' or inlined and what == 'rows')
    self, total = sums(stacks)
    perf_self, perf_total = sums(perfs)
    wrong += differences('self of', self, perf_self)
    if what == 'stacks':
        wrong += differences('stack', stacks, perfs)
        for several in ('[kernel]', '[unknown]'):  # rows of which one stack has more than one
            del total[several], perf_total[several]
        wrong += differences('total of', total, perf_total)
        # For a sample without a chain perf 6.1 --children counts the callers of the sample before.
        has_chains = any(len(stack) > 1 for stack in perfs)
        wrong += [f'share of {name}: {total[name]} of {report["total"]}, not {share} %'
                  for name, share in children(with_children, int(section)).items()
                  if has_chains and name in total and not NO_CALLER.fullmatch(name)
                  and abs(100 * total[name] / report['total'] - share) > 0.01]
    if hidden != int(expected):
        wrong.append(f'{hidden} of guests, not {expected}')
    print('\n'.join(wrong[:20]), f'{len(wrong)} differences', sep='\n')
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
