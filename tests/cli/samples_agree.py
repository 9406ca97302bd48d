#!/usr/bin/env python3
"""samples_agree.py CALLS CHILDREN FOLDED REPORT HIDDEN WHAT: whether perfjit has perf's stacks, and self and total of each function;
with WHAT `self` the latter alone.

CALLS and CHILDREN are perf report's, --no-children -g folded,0,caller,function,count and --children -g none, both with
-F overhead,sample,sym or overhead_children; FOLDED and REPORT are perfjit's, of samples (--weight samples).  HIDDEN samples are of
guests, which perf does not show.

perf has a row for each tier, and none for the kernel's functions here: it has the list of another kernel.  What nothing names is
an address in perf.  Where the innermost function of the chain is not that of the sample's own address, perf shows the latter in
the row and the former in the chain: both are in perfjit's stack."""
import collections
import json
import re
import sys

# Of the C library's gaps and data perf's names and perfjit's differ: no code is there, and such a frame is no caller, but what a
# function without a frame pointer left in the register.  The vDSO is this machine's or unknown.
NOT_THERE = {'_GLOBAL__sub_I_eh_alloc.cc', '__fini_array_end', '__vdso_clock_gettime'}
TIER = re.compile(r' \[(tier\d+|stub)\]$')


def plain(name):
    name = TIER.sub('', name.strip())
    name = re.sub(r'^\[(.)\] ', '', name)
    if re.fullmatch(r'(0x)?f{4}[0-9a-f]{12}', name) or name in ('[kernel]', '[hypervisor]'):
        return '[kernel]'
    return '[unknown]' if name in NOT_THERE or re.fullmatch(r'0|(0x)?[0-9a-f]{16}|0x[0-9a-f]+', name) else name


def perf_stacks(path):
    """Of the first event: counts by stack, the outermost first."""
    stacks, row, left, sections = collections.Counter(), None, 0, 0
    for line in open(path, errors='replace'):
        head = re.match(r' +[\d.]+% +(\d+) +(\[.\] .*)', line)
        calls = re.match(r'(\d+) (.*)', line)
        sections += line.startswith('# Samples')
        if sections > 1:
            break
        if head:
            stacks[(row,)] += left
            row, left = plain(head[2]), int(head[1])
        elif calls:
            stack = [plain(name) for name in calls[2].split(';')]
            if stack[-1] != row:
                stack.append(row)
            stacks[tuple(stack)] += int(calls[1])
            left -= int(calls[1])
    stacks[(row,)] += left
    return +stacks


def own_name(frame):
    kernel = frame.endswith('_[k]')
    return '[kernel]' if kernel else plain(re.sub(r'_\[[a-z]\]$', '', frame))


def own_stacks(path):
    stacks, hidden = collections.Counter(), 0
    for line in open(path):
        stack, count = line.rstrip('\n').rsplit(' ', 1)
        frames = [own_name(frame) for frame in stack.split(';')[1:]]
        if frames[-1].startswith('[guest'):
            hidden += int(count)
        else:
            stacks[tuple(frames)] += int(count)
    return stacks, hidden


def sums(stacks):
    self, total = collections.Counter(), collections.Counter()
    for stack, count in stacks.items():
        self[stack[-1]] += count
        for name in set(stack):
            total[name] += count
    return self, total


def differences(what, ours, perfs):
    return [f'{what} {name}: {ours[name]}, perf {perfs[name]}' for name in sorted({*ours, *perfs}, key=str)
            if ours[name] != perfs[name]]


def children(path):
    """Of functions that have one row: their total, in percent."""
    found = collections.defaultdict(list)
    for line in open(path, errors='replace'):
        row = re.match(r' +([\d.]+)% +(\[.\] .*)', line)
        if row:
            found[plain(row[2])].append(float(row[1]))
        if line.startswith('# Samples') and found:
            break
    return {name: rows[0] for name, rows in found.items() if len(rows) == 1}


def main():
    calls, with_children, folded, report, expected, what = sys.argv[1:]
    perfs, (ours, hidden) = perf_stacks(calls), own_stacks(folded)
    wrong = [] if what == 'self' else differences('stack', ours, perfs)
    perf_self, perf_total = sums(perfs)
    self, total = collections.Counter(), collections.Counter()
    report = json.load(open(report))
    for row in report['functions']:
        name = '[kernel]' if row['kind'] == 'kernel' else plain(row['name'])
        self[name] += row['self']
        total[name] += row['total']
    for several in ('[kernel]', '[unknown]'):  # rows of which one stack has more than one
        del total[several], perf_total[several]
    guests = [name for name in self if name.startswith('[guest')]
    for name in guests:
        del self[name], total[name]
    wrong += differences('self of', self, perf_self)
    everything = report['samples']
    if what != 'self':
        wrong += differences('total of', total, perf_total)
    for name, share in children(with_children).items():
        if what != 'self' and name in total and abs(100 * total[name] / everything - share) > 0.01:
            wrong.append(f'share of {name}: {total[name]} of {everything}, perf {share}')
    if hidden != int(expected):
        wrong.append(f'{hidden} samples of guests, not {expected}')
    if sum(perfs.values()) < 50:
        wrong.append('too few samples')
    print('\n'.join(wrong[:20]), f'{len(wrong)} differences', sep='\n')
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
