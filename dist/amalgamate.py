#!/usr/bin/env python3
"""Make one C file and one header of a library, for projects that keep a copy of it.

    dist/amalgamate.py LIBRARY DIRECTORY        LIBRARY: jitdump, perfmap or jitunwind

writes LIBRARY.c and LIBRARY.h into DIRECTORY, and headers by the names that they have where the
library is installed: LIBRARY/LIBRARY.h; for jitdump also jitdump/cfi.h and jitdump/trampoline.h,
whose contents LIBRARY.h has, and those for C++.

Which files belong to it follows from the sources: all .c files in the library's folder and those
below it, and of another folder's each one whose header they include.  First come the headers, each
once and after those that it includes, then the .c files.

What files of their own keep apart must not meet in one:
- a name that a .c file has for itself, and another file as well, gets the file's name in front;
- a macro of a .c file ends with it;
- what the library's files share (jd_...) is static, so that the object defines LIBRARY_... alone.

The file may be included into another C file.  So all that is not in the public header has the library's letters in front
(jd_ or jdin_, ...), macros too.
"""
import os
import re
import shutil
import sys

TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)
      | (?P<directive>(?<![^\n])[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)
      | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
      | (?P<mark>->|\.\.\.|[^\s\w])
      | (?P<space>\s+)""",
    re.VERBOSE | re.DOTALL)
KEYWORDS = set("""auto break case char const continue default do double else enum extern float for
    goto if inline int long register restrict return short signed sizeof static struct switch typedef
    union unsigned void volatile while _Alignas _Alignof _Atomic _Bool _Generic _Noreturn
    _Static_assert _Thread_local __attribute__ __thread __typeof__ __extension__ __asm__""".split())
CALLED = {"__attribute__", "_Static_assert", "_Alignas", "_Alignof", "sizeof", "__typeof__", "__asm__"}
INTERNAL = re.compile(r"(jd|ju|pm)_")
LETTERS = {"jitdump": "jd", "perfmap": "pm", "jitunwind": "ju"}

# Behind system headers of a file that does not define _GNU_SOURCE: the next ones have all names, and these stand in what may have
# been included before.
LATE = """#if defined(_FEATURES_H) && defined(__GLIBC__) && !defined(__USE_GNU)
#if %s
#error "This file has to come before the system headers, or _GNU_SOURCE: they have no names of POSIX or GNU"
#endif
#undef _FEATURES_H
#include <features.h>
#endif
"""
TOO_LATE = {"jitunwind": "defined(_SYS_UCONTEXT_H) || defined(_LINK_H)"}
STRICT = "!defined(__USE_XOPEN2K8) && (" + " || ".join(
    f"defined(_{name}_H)" for name in "FCNTL PTHREAD SIGNAL SYS_MMAN SYS_STAT TIME UNISTD".split()) + ")"
LATE_NAMES = {
    "jitdump": """char *secure_getenv(const char *);
ssize_t getline(char **restrict, size_t *restrict, FILE *restrict);
size_t strnlen(const char *, size_t);
int asprintf(char **restrict, const char *restrict, ...);
char *strdup(const char *);
void *mremap(void *, size_t, size_t, int, ...);
int fallocate(int, int, off_t, off_t);
#ifndef MREMAP_MAYMOVE
#define MREMAP_MAYMOVE 1
#define MREMAP_FIXED 2
#endif
#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_SEAL_SEAL 1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#endif
#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#define MFD_ALLOW_SEALING 2u
#endif
#ifndef FALLOC_FL_KEEP_SIZE
#define FALLOC_FL_KEEP_SIZE 1
#define FALLOC_FL_PUNCH_HOLE 2
#endif
""",
    "perfmap": """#include <stddef.h>
char *secure_getenv(const char *);
char *strdup(const char *);
size_t strnlen(const char *, size_t);
void *reallocarray(void *, size_t, size_t);
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 32)
const char *strerrordesc_np(int);
#endif
#endif
""",
    "jitunwind": """char *secure_getenv(const char *);
char *strdup(const char *);
"""}


class Token:
    def __init__(self, kind, text):
        self.kind, self.text = kind, text

    def __repr__(self):
        return self.text


def tokens_of(text):
    return [Token(match.lastgroup, match.group()) for match in TOKEN.finditer(text)]


def is_code(token):
    return token.kind not in ("comment", "directive", "space")


def items_of(tokens):
    """The declarations and definitions of a file: lists of indices of tokens."""
    item, depth, parens = [], 0, 0
    for i, token in enumerate(tokens):
        if not is_code(token):
            continue
        item.append(i)
        depth += (token.text == "{") - (token.text == "}")
        parens += (token.text == "(") - (token.text == ")")
        if depth or parens:
            continue
        is_function = token.text == "}" and is_function_body(tokens, item)
        if token.text == ";" or is_function:
            yield item
            item = []
    if item:
        raise SystemExit(f"amalgamate: a file ends in the middle of: {tokens[item[0]].text}")


def is_function_body(tokens, item):
    """Whether the first brace of ITEM comes behind a parameter list (or extern "C")."""
    texts = [tokens[i].text for i in item]
    before = texts[texts.index("{") - 1]
    return before == ")" or before.startswith('"')


class Declared:
    """The names that an item declares at file scope."""

    def __init__(self, tokens, item):
        self.tokens = [tokens[i] for i in item]
        self.tags, self.names = set(), set()
        self.external = not any(t.text in ("static", "typedef") for t in self.outside())
        self.object = None
        self.read_types()
        self.read_object()

    def outside(self):
        depth = 0
        for token in self.tokens:
            depth -= token.text in (")", "}", "]")
            if depth == 0:
                yield token
            depth += token.text in ("(", "{", "[")

    def read_types(self):
        for i, token in enumerate(self.tokens[:-2]):
            name, brace = self.tokens[i + 1], self.tokens[i + 2]
            if token.text in ("struct", "union", "enum") and name.kind == "name" and brace.text == "{":
                self.tags.add(name.text)
            if token.text == "enum" and "{" in (name.text, brace.text):
                self.read_constants(i)

    def read_constants(self, i):
        while self.tokens[i].text != "{":
            i += 1
        depth, previous = 0, None
        for token in self.tokens[i:]:
            depth += (token.text in ("{", "(")) - (token.text in ("}", ")"))
            if depth == 0:
                return
            if depth == 1 and token.kind == "name" and previous in ("{", ","):
                self.names.add(token.text)
            previous = token.text

    def read_object(self):
        """The function or the variables."""
        tokens = list(self.outside())
        for i, token in enumerate(tokens[:-1]):
            previous = tokens[i - 1].text if i else ""
            follows = tokens[i + 1].text
            if token.kind != "name" or token.text in KEYWORDS or previous in ("struct", "union", "enum"):
                continue
            if follows == "(" and token.text not in CALLED:
                self.object = token.text
                break
            if follows in ("=", ";", "[", ","):
                self.object = token.text
                self.names.add(token.text)
                if follows == "=":
                    break
        for i, token in enumerate(self.tokens[:-3]):
            if [t.text for t in self.tokens[i:i + 2]] == ["(", "*"] and self.tokens[i + 3].text == ")" \
                    and self.object is None:
                self.object = self.tokens[i + 2].text
        if self.object:
            self.names.add(self.object)


class Source:
    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.tokens = tokens_of(file.read())
        self.includes, self.systems, self.macros = [], [], []
        self.read_directives()
        self.items = [(item, Declared(self.tokens, item)) for item in items_of(self.tokens)]
        self.names = set().union(*(d.names for _, d in self.items), self.macros)
        self.tags = set().union(*(d.tags for _, d in self.items))

    def read_directives(self):
        """Take out includes and the header's guard; remember macros, but those that are asked for
        first."""
        guard, asked, level = None, None, 0
        for i, token in enumerate(self.tokens):
            if token.kind != "directive":
                continue
            line = token.text.strip()
            word = re.match(r"#\s*(\w+)", line).group(1)
            rest = line[line.index(word) + len(word):].strip()
            first = rest.split("(")[0].split()[0] if rest else ""
            if word == "ifndef" and self.path.endswith(".h") and guard is None and level == 0:
                guard, token.text = first, ""
            elif word == "define" and (first == guard or first.endswith("_NO_INLINE")):
                token.text = ""
            elif word in ("if", "ifdef", "ifndef"):
                level += 1
            elif word == "endif":
                if level == 0:
                    token.text = ""
                level -= 1
            elif word == "include" and rest.startswith('"'):
                self.includes.append(rest.strip('"'))
                token.text = ""
            elif word == "include" and level == 0:
                self.systems.append(rest)
                token.text = ""
            elif word == "define" and asked != first:
                self.macros.append(first)
            asked = first if word == "ifndef" else None

    def make_local(self, prefix):
        for item, declared in self.items:
            first = self.tokens[item[0]]
            if self.path.endswith(".h") and first.text == "static":  # a function, if it is used
                first.text = f"{prefix}_LOCAL"
            if declared.object and declared.external and INTERNAL.match(declared.object):
                first.text = f"{prefix}_LOCAL" + ("" if first.text == "extern" else f" {first.text}")

    def own(self, name):
        file = os.path.basename(self.path).rsplit(".", 1)[0]
        return f"{file.upper() if name.isupper() else file}_{name}"

    def rename(self, names, tags):
        """Rename what NAMES and TAGS have new names for."""
        code = [t for t in self.tokens if is_code(t)]
        scopes = []
        for i, token in enumerate(code):
            previous = code[i - 1].text if i else ""
            if token.text == "{":
                before = {t.text for t in code[max(0, i - 2):i]}
                scopes.append(bool(before & {"struct", "union"}))
            elif token.text == "}":
                scopes.pop()
            if token.kind != "name" or previous in (".", "->"):
                continue
            if previous in ("struct", "union", "enum"):
                token.text = tags.get(token.text, token.text)
            elif token.text in names and not self.is_member(code, i, scopes):
                token.text = names[token.text]
        for token in self.tokens:
            if token.kind == "directive" and token.text:
                token.text = re.sub(r"((?:struct|union|enum)\s+)?(?<![\w.>])([A-Za-z_]\w*)",
                                    lambda m: m.group(1) + tags.get(m.group(2), m.group(2)) if m.group(1)
                                    else names.get(m.group(2), m.group(2)), token.text)
        self.macros = [names.get(m, m) for m in self.macros]

    def declared(self):
        """The names at file scope now: of types and constants, objects, macros."""
        items = [Declared(self.tokens, item) for item, _ in self.items]
        tags, names = set(), set(self.macros)
        for item in items:
            tags |= item.tags
            names |= item.names
            if item.object and item.external and not INTERNAL.match(item.object):
                names.discard(item.object)  # libc's, or the library's own
        return names, tags

    @staticmethod
    def is_member(code, i, scopes):
        """Whether it is the name of a struct's member, where the struct is defined."""
        if not scopes or not scopes[-1]:
            return False
        is_pointer = [t.text for t in code[i - 2:i]] == ["(", "*"] and code[i + 1].text == ")"
        return is_pointer or code[i + 1].text in (";", ",", "[", ":")

    def text(self):
        text = "".join(t.text for t in self.tokens)
        # Checked where the library is built; ISO C has no %m.
        text = re.sub(r"__attribute__\(\(format\(printf, \d, \d\)\)\)\s*", "", text)
        return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


class Library:
    def __init__(self, name):
        self.name = name
        self.public = [f"{name}/{name}.h"] + ["jitdump/cfi.h", "jitdump/trampoline.h"] * (name == "jitdump")
        self.sources, self.headers = [], []
        for folder, _, files in sorted(os.walk(name)):
            for file in sorted(files):
                if file.endswith(".c"):
                    self.add(f"{folder}/{file}")
        self.systems = []
        for source in self.headers + self.sources:
            self.systems += [s for s in source.systems if s not in self.systems]

    def add(self, path):
        if any(path == known.path for known in self.sources + self.headers):
            return
        source = Source(path)
        (self.headers if path.endswith(".h") else self.sources).append(source)
        for include in source.includes:
            if include in self.public:
                continue
            self.add(include)
            if path.endswith(".h"):  # it comes after what it includes
                self.headers.remove(source)
                self.headers.append(source)
            other = include[:-2] + ".c"
            if os.path.exists(other):
                self.add(other)

    def separate(self):
        shared_names = set().union(*(h.names for h in self.headers))
        shared_tags = set().union(*(h.tags for h in self.headers))
        for source in self.sources:
            others = [o for o in self.sources if o is not source]
            names = source.names & (shared_names | set().union(*(o.names for o in others)))
            tags = source.tags & (shared_tags | set().union(*(o.tags for o in others)))
            source.clashes = ({n: source.own(n) for n in names if n not in source.macros
                               and not INTERNAL.match(n) and not n.startswith(self.name + "_")},
                              {t: source.own(t) for t in tags})
        for source in self.sources:
            source.rename(*source.clashes)
        self.put_in_front()
        for source in self.headers + self.sources:
            source.make_local(self.name.upper())

    def put_in_front(self):
        """What is not public gets the library's letters."""
        public = [Source(path) for path in self.public]
        keep = set().union(*(p.names | set(p.macros) | p.tags for p in public))
        for source in public:
            code = [t.text for t in source.tokens if is_code(t)]
            keep |= {name for word, name in zip(code, code[1:]) if word in ("struct", "union", "enum")}
        letters = LETTERS[self.name]
        names, tags = {}, {}
        for source in self.headers + self.sources:
            for found, mapping in zip(source.declared(), (names, tags)):
                for name in found - keep:
                    front = f"{letters}in_"  # jd_... are names of the sources
                    if not name.startswith((f"{letters}_", f"{letters.upper()}_", "_")):
                        mapping[name] = (front.upper() if name.isupper() else front) + name
        for source in self.headers + self.sources:
            source.rename(names, tags)

    def write_c(self, directory, license_text, version):
        prefix = self.name.upper()
        with open(f"{directory}/{self.name}.c", "w", encoding="utf-8") as out:
            out.write(f"/* lib{self.name} {version} in one file, made by dist/amalgamate.py of perfjit's sources.\n *\n"
                      f" * Compile it with the program, as C11, or include it into one C file of it; {self.name}.h beside\n"
                      f" * it is the contract.  With {prefix}_STATIC defined it exports nothing.\n *\n")
            out.write("".join(f" * {line}".rstrip() + "\n" for line in license_text.splitlines()))
            out.write(f" */\n#ifndef {prefix}_C\n#define {prefix}_C\n#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n"
                      "#if !defined(__LP64__) && !defined(_FILE_OFFSET_BITS)\n#define _FILE_OFFSET_BITS 64\n#endif\n")
            out.write(LATE % TOO_LATE.get(self.name, STRICT))
            out.write(f"#ifndef {prefix}_H /* else its inline calls are there already */\n#define {prefix}_NO_INLINE\n#endif\n"
                      f"#include \"{self.name}.h\"\n\n")
            out.write("".join(f"#include {name}\n" for name in sorted(self.systems)))
            out.write(LATE_NAMES[self.name])
            out.write("\n/* What the files share. */\n"
                      f"#if defined(__GNUC__)\n#define {prefix}_LOCAL __attribute__((unused)) static\n"
                      f"#else\n#define {prefix}_LOCAL static\n#endif\n")
            for source in self.headers + self.sources:
                out.write(f"\n/* ---- {source.path} ---- */\n\n{source.text()}")
                if source.path.endswith(".c"):
                    out.write("".join(f"#undef {macro}\n" for macro in dict.fromkeys(source.macros)))
            out.write("\n#endif\n")

    def write_h(self, directory):
        with open(f"{directory}/{self.name}.h", "w", encoding="utf-8") as out:
            for path in self.public:
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                out.write(text if path == self.public[0] else
                          "\n" + re.sub(r'#include "jitdump\.h"\n\n', "", text))

    def write_beside(self, directory):
        """The names that the headers have where the library is installed."""
        os.makedirs(f"{directory}/{self.name}", exist_ok=True)
        for path in self.public:
            with open(f"{directory}/{path}", "w", encoding="utf-8") as out:
                out.write(f'/* All of it is in {self.name}.h. */\n#include "../{self.name}.h"\n')
        if self.name == "jitdump":
            for header in "cfi.hpp", "memory.hpp", "jitdump.hpp":
                shutil.copyfile(f"jitdump/{header}", f"{directory}/jitdump/{header}")


def main():
    if len(sys.argv) != 3 or not os.path.exists(f"{sys.argv[1]}/{sys.argv[1]}.h"):
        raise SystemExit("usage: dist/amalgamate.py LIBRARY DIRECTORY, in the folder of perfjit's sources")
    name, directory = sys.argv[1:]
    os.makedirs(directory, exist_ok=True)
    library = Library(name)
    with open(library.public[0], encoding="utf-8") as file:
        version = re.search(r'_VERSION "([^"]*)"', file.read()).group(1)
    with open("LICENSE", encoding="utf-8") as file:
        license_text = file.read()
    library.separate()
    library.write_c(directory, license_text, version)
    library.write_h(directory)
    library.write_beside(directory)


main()
