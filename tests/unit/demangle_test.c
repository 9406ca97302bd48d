/* Mangled names as people write them. */
#include "injector/native/symbols/demangle.h"

#include "injector/log/code/jit_name.h"
#include "tests/unit/scratch.h"

static void assert_plain(const char *symbol, const char *wanted)
{
    char *plain = demangle(symbol, DEMANGLED_MOST_BYTES);
    if (wanted ? !plain || strcmp(plain, wanted) : plain != NULL)
        fail_msg("%s: %s", symbol, plain ? plain : "NULL");
    free(plain);
}

static void test_cxx(void **state)
{
    (void)state;
    assert_plain("malloc", NULL);
    assert_plain("", NULL);
    assert_plain("_Zwrong", NULL);
    assert_plain("_ZN4node5StartEiPPc", "node::Start");
    assert_plain("_ZNK3foo3barEv", "foo::bar");
    assert_plain("_ZN3fooclEi", "foo::operator()");
    assert_plain("_Znwm", "operator new");
    assert_plain("_Z3maxIiET_S0_S0_", "max<int>");
    assert_plain("_ZN12_GLOBAL__N_13runEv", "(anonymous namespace)::run");
    assert_plain("_ZTV3foo", "vtable for foo");
    assert_plain("_ZThn16_N3foo3barEv", "non-virtual thunk to foo::bar()");
    assert_plain("_ZTv0_n24_NK3foo3barEi.cold", "virtual thunk to foo::bar(int) const");
    assert_plain("_ZGTtN3foo3barEv", "transaction clone for foo::bar()");
    assert_plain("_Z1fv.part.0", "f");
}

/* f(A<int, int>, A<that, that>, ...): each part of ten bytes doubles the name.  Returns SYMBOL. */
static const char *doubled(char *symbol, unsigned parts)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    strcpy(symbol, "_Z1f1AIiiE");
    for (unsigned i = 0; i < parts; i++)
        sprintf(symbol + strlen(symbol), "S_IS%c_S%c_E", digits[i], digits[i]);
    return symbol;
}

static void test_cxx_that_grows(void **state)
{
    (void)state;
    char symbol[512];
    alarm(60);
    assert_plain(doubled(symbol, 1), "f");
    assert_plain(doubled(symbol, 9), "f");
    assert_plain(doubled(symbol, 16), NULL);
    assert_plain(doubled(symbol, 36), NULL);
    alarm(0);
}

static void test_older_rust(void **state)
{
    (void)state;
    assert_plain(
        "_ZN51_$LT$acme..Alpha$LT$T$GT$$u20$as$u20$acme..Work$GT$4step17h03b5a052cf7308efE",
        "<acme::Alpha<T> as acme::Work>::step");
    assert_plain("_ZN1w1m4work28_$u7b$$u7b$closure$u7d$$u7d$17had3ea338f649ed52E",
                 "w::m::work::{{closure}}");
    assert_plain("_ZN1w1m3arr17h7cdf79832a7a2bacE.llvm.1234", "w::m::arr");
    assert_plain("_ZN3std2io3a.b17h7cdf79832a7a2bacE", "std::io::a.b");
    assert_plain("_ZN1w5_$C$x17h7cdf79832a7a2bacE", "w::,x");
    /* Not all that ends like a hash is one. */
    assert_plain("_ZN1w1m17h7cdf79832a7a2baCE", "w::m::h7cdf79832a7a2baC");
    assert_plain("_ZN1w17h7cdf79832a7a2bac1mE", "w::h7cdf79832a7a2bac::m");
}

static void test_rust(void **state)
{
    (void)state;
    assert_plain("_RNvNtCs4fqI2P2rA04_4acme5inner3run", "acme::inner::run");
    assert_plain("_RNvNtCs4fqI2P2rA04_4acme5inner3run.llvm.1234", "acme::inner::run");
    assert_plain("_RNCNvCs4fqI2P2rA04_4acme4work0B3_", "acme::work::{closure#0}");
    assert_plain("_RNCNvC4acme4works_0", "acme::work::{closure#1}");
    assert_plain("_RNSNvC4acme4work6vtable", "acme::work::{shim:vtable#0}");
    assert_plain("_RINvNtC1w1m3arrKj3_E", "w::m::arr::<3>");
    assert_plain("_RINvC1w3genNCNvB2_4main0E", "w::gen::<w::main::{closure#0}>");
    assert_plain("_RNvXNtC1w1mINtB2_5AlphamENtB2_4Work4step",
                 "<w::m::Alpha<u32> as w::m::Work>::step");
    assert_plain("_RNvMNtC1w1mINtB2_5AlphaeE3new", "<w::m::Alpha<str>>::new");
    assert_plain("_RNvYcNtC1w5Trait3run", "<char as w::Trait>::run");
    assert_plain("_RNvC1wu8gdel_5qa", "w::g\u00f6del");
    assert_plain("_RINvC1w1fRShQDG_INtC1x1YL0_Ep1TyEL_E",
                 "w::f::<&[u8], &mut dyn for<'a> x::Y<'a, T = u64>>");
    assert_plain("_RINvC1w1fFUK10rust_intrivEzE",
                 "w::f::<unsafe extern \"rust-intri\" fn(...) -> !>");
    assert_plain(
        "_RINvC1w1fFG0_KCRL1_hRL0_tEuFUEzAxj10_TaETlsEPnOoE",
        "w::f::<for<'a, 'b> extern \"C\" fn(&'a u8, &'b u16), unsafe fn() -> !, [i64; 16], "
        "(i8,), (i32, i16), *const i128, *mut u128>");
    assert_plain("_RINvC1w1fKb1_Kan7f_Kc61_Kc27_KpKojffffffffffffffff0_E", NULL);
    assert_plain("_RINvC1w1fKb1_Kan7f_Kc61_Kc27_KpKoffffffffffffffff0_E",
                 "w::f::<true, -127, 'a', '\\'', _, 0xffffffffffffffff0>");
    assert_plain("_RINvC1w1fKRe616222_KAh1_h2_EKTh1_EKVNtC1w1PS1xh1_1yb0_EKVNtC1w1OUE",
                 "w::f::<\"ab\\\"\", {[1, 2]}, {(1,)}, {w::P { x: 1, y: false }}, {w::O}>");
}

static void test_rust_that_is_wrong(void **state)
{
    (void)state;
    const char *const symbols[] = {"_R",
                                   "_RC",
                                   "_RNvC1w1f!",
                                   "_R1NvC1w1f",
                                   "_RNvC9w1f",
                                   "_RNvC1w",
                                   "_RB_",
                                   "_RNvB9_1f",
                                   "_RNvC1wu2__",
                                   "_RINvC1w1fL9_E",
                                   "_RINvC1w1fKc110000_E",
                                   "_RINvC1w1fKcd800_E",
                                   "_RNvC1w1fCz",
                                   "_RINvC1w1fzzzzzz"};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        assert_plain(symbols[i], NULL);
}

/* Each tuple has the one before twice.  Returns SYMBOL. */
static const char *rust_doubled(char *symbol, unsigned parts)
{
    size_t place = 0, next;
    strcpy(symbol, "_RINvC1w1fTuuE");
    place = strlen("INvC1w1f");
    for (unsigned i = 0; i < parts; i++, place = next) {
        static const char digits[] =
            "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        char number[8];
        size_t value = place - 1;
        if (value < 62)
            snprintf(number, sizeof number, "%c_", digits[value]);
        else
            snprintf(number, sizeof number, "%c%c_", digits[value / 62], digits[value % 62]);
        next = strlen(symbol) - 2;
        sprintf(symbol + strlen(symbol), "TB%sB%sE", number, number);
    }
    return strcat(symbol, "E");
}

static void test_rust_that_grows(void **state)
{
    (void)state;
    char symbol[1024] = "_R";
    alarm(60);
    assert_plain(
        rust_doubled(symbol, 2),
        "w::f::<((), ()), (((), ()), ((), ())), ((((), ()), ((), ())), (((), ()), ((), ())))>");
    assert_plain(rust_doubled(symbol, 60), NULL);
    strcpy(symbol, "_R");
    memset(symbol + 2, 'M', 900);
    symbol[902] = '\0';
    assert_plain(symbol, NULL);
    alarm(0);
}

static void test_d(void **state)
{
    (void)state;
    assert_plain("_Dmain", "D main");
    assert_plain("_D3std5stdio4File5writeMFZv", "std.stdio.File.write");
    assert_plain("_D4acme4tool4mainFAAyaZ9__lambda7FiZi", "acme.tool.main.__lambda7");
    assert_plain("_D4acme4tool__T3FooTiZQh6__ctorMFNaNbNcNiNfiZSQBsQBq__TQBoTiZQBu",
                 "acme.tool.Foo!(int).Foo.this");
    assert_plain("_D4acme4tool__T3genTiVii3VAyaa4_68c3a979S_DQBpQBn6helperFiZiZQBuFG3iPOiZi",
                 "acme.tool.gen!(int, 3, \"h\u00e9y\", acme.tool.helper).gen");
    assert_plain(
        "_D1a__T1fTHAyaiTDFiZvTPFZvTxbVbi1VaN97Z1fFZv",
        "a.f!(int[immutable(char)[]], delegate(int), function(), const(bool), true, -'a').f");
    assert_plain("_D1a1fFNaNbNiNfKiLaMxkXv", "a.f");
    const char *const wrong[] = {"_D",        "_Dx",        "_D1a",   "_D9aFZv",
                                 "_D1aQzFZv", "_D1a1fFZv!", "_DQaFZv"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_plain(wrong[i], NULL);
}

static void test_ocaml(void **state)
{
    (void)state;
    assert_plain("camlStdlib__List__map_123", "Stdlib.List.map_123");
    assert_plain("camlStdlib.List.map_123", "Stdlib.List.map_123");
    assert_plain("camlStdlib__$40_123", "Stdlib.@_123");
    assert_plain("camlO__$2b$7c_83", "O.+|_83");
    assert_plain("camlStdlib__$$_12", "Stdlib.$$_12");
    assert_plain("camlO__$0a_1", "O.$0a_1");
    assert_plain("caml_alloc", NULL);
    assert_plain("camlfoo__bar_1", NULL);
    assert_plain("camlFoo", NULL);
}

static void test_java(void **state)
{
    (void)state;
    assert_plain("Ljava/lang/String;hashCode()I", "java.lang.String.hashCode()");
    assert_plain("Ljava/lang/String;indexOf(II)I", "java.lang.String.indexOf(int, int)");
    assert_plain("La/B$C;f(JZ[BLjava/util/List;[[D)Ljava/lang/Object;",
                 "a.B$C.f(long, boolean, byte[], java.util.List, double[][])");
    assert_plain("La/B;<init>()V", "a.B.<init>()");
    const char *const wrong[] = {"Lfoo",   "La/B;",    "La/B;f",     "La/B;f(",  "La/B;f(Q)V",
                                 "L;f()V", "La/B;()V", "La/B;f()VV", "La/B;f()", "List::get(I)V"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_plain(wrong[i], NULL);
}

static void test_swift(void **state)
{
    (void)state;
    assert_plain("$s4main3fooyySiF", "main.foo");
    assert_plain("_$s4main3FooC3bar1xySi_tF.cold", "main.Foo.bar");
    assert_plain("$S8mangling14varargsVsArray3arr1nySid_SStF", "mangling.varargsVsArray");
    assert_plain("$ss10DictionaryV3t17E6Index2V1loiySbAEyxq__G_AGtFZ", "Swift.Dictionary.Index2.<");
    assert_plain("$sSa4mainE3fooyyF", "Swift.Array.foo");
    assert_plain("$s4main3BarPAAE3runyyF", "main.Bar.run");
    assert_plain("$s4main5MyAppV02DoaB5ThingyyF", "main.MyApp.DomainMyThing");
    assert_plain("$s4main3FooC1xACSi_tcfc", "main.Foo.init");
    assert_plain("$s4main3FooCfD", "main.Foo.deinit");
    assert_plain("$s4main3FooC3barSivg", "main.Foo.bar.getter");
    assert_plain("$s4main3fooyyFyycfU0_", "main.foo.{closure #2}");
    assert_plain("$s4main3fooyyYaFTY0_", "main.foo");
    assert_plain("$s4main3fooyySiFTf4n_n", "main.foo");
    assert_plain("$s4main3fooyyxlFSi_Tg5", "main.foo");
    /* Data, and what is not known, stay as they are. */
    const char *const others[] = {
        "$s4main1gyySiXCvp", "$s4main3FooCMa",  "$s", "$s4mainF", "$sF", "$s9main3fooyyF",
        "$s0059xx_ttee",     "$s4main0Z3fooyyF"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_plain(others[i], NULL);
}

static void assert_jit(const char *name, const char *wanted)
{
    char *plain = jit_name_demangled(name, strlen(name));
    if (wanted ? !plain || strcmp(plain, wanted) : plain != NULL)
        fail_msg("%s: %s", name, plain ? plain : "NULL");
    free(plain);
}

static void test_jit_names(void **state)
{
    (void)state;
    assert_jit("_ZN3app5sieveEPhi", "app::sieve");
    assert_jit("_ZN3app5sieveEPhi [tier2]", "app::sieve [tier2]");
    assert_jit("JSC-WasmOMG: _ZN3app5sieveEPhi", "JSC-WasmOMG: app::sieve");
    assert_jit("JS:_ZN3app5sieveEPhi-3-liftoff", "JS:app::sieve-3-liftoff");
    assert_jit("JS:*_ZN3app5sieveEPhi /a.js:1:2", NULL); /* JavaScript's own name */
    assert_jit("tj::fib [tier2]", NULL);
    assert_jit("", NULL);
}

/* A dump has any number of names: each may grow by its own length alone. */
static void test_jit_names_that_grow(void **state)
{
    (void)state;
    char symbol[1024];
    rust_doubled(symbol, 7);
    assert_jit(symbol, NULL);
    char *plain = demangle(symbol, DEMANGLED_MOST_BYTES);
    assert_non_null(plain);
    assert_true(strlen(plain) > 16 * strlen(symbol));
    free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cxx),
        cmocka_unit_test(test_cxx_that_grows),
        cmocka_unit_test(test_older_rust),
        cmocka_unit_test(test_rust),
        cmocka_unit_test(test_rust_that_is_wrong),
        cmocka_unit_test(test_rust_that_grows),
        cmocka_unit_test(test_d),
        cmocka_unit_test(test_ocaml),
        cmocka_unit_test(test_java),
        cmocka_unit_test(test_swift),
        cmocka_unit_test(test_jit_names),
        cmocka_unit_test(test_jit_names_that_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
