# perfjit export with programs that are made for it; answers.bats has the formats of recordings that all answers share.
load helper

setup() {
    require_perf
    cd "$BATS_TEST_TMPDIR"
}

# The two libraries stand in the recording, too; the program does not.
record_libraries() {
    gcc -O1 -shared -fPIC -Wl,--build-id -o first.so lib.c
    gcc -O1 -shared -fPIC -Wl,--build-id -o second.so lib.c
    gcc -O1 -o two_libraries main.c
    record libraries -g ./two_libraries
    rm two_libraries
}

# bats test_tags=both
@test "firefox: functions of one name in two libraries are told apart by their library" {
    printf 'static volatile unsigned long n;\nvoid one_name(void) { for (int i = 0; i < 100000; i++) n++; }\n' >lib.c
    printf 'void (*volatile first)(void), (*volatile second)(void);\n#include <dlfcn.h>\n#include <time.h>\nint main(void)\n{\n    first = (void (*)(void))dlsym(dlopen("./first.so", RTLD_NOW | RTLD_LOCAL), "one_name");\n    second = (void (*)(void))dlsym(dlopen("./second.so", RTLD_NOW | RTLD_LOCAL), "one_name");\n    while (clock() < CLOCKS_PER_SEC / 5) first(), second();\n    return 0;\n}\n' >main.c
    recording libraries record_libraries
    perfjit export -q -f firefox -o own.json libraries
    jq -r '.libs as $libs | .threads[] | .stringArray as $strings | .resourceTable as $r | .funcTable | range(.length) as $i |
        select($strings[.name[$i]] == "one_name") | "\($libs[$r.lib[.resource[$i]]].name) \(.fileName[$i])"' own.json | sort >got
    printf '%s\n' 'first.so null' 'second.so null' | same got /dev/stdin
}
