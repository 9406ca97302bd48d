/* chain_check: are the call chains of a profile of tinyjit whole, and possible?
 *
 *     perf script --no-inline -F ip,sym,symoff -i perf.jit.data | chain_check [-i INLINE_LOG] SCRIPT [CODE]
 *
 * A chain is right if each frame could have been called by the next one, from the innermost to _start: compiled functions
 * by what SCRIPT says (by call() each function whose number it takes with @), helpers in C by who uses them, the stubs by
 * what they are for, C by C; and if compiled code begins with the entry stub.
 *
 * With CODE, the file of tinyjit --dump-code, the chains are those of frame pointers.  They may end at main(), because
 * the C library has none; and where the innermost function has not set rbp, or has it no more, they lack its caller:
 * that is known from CODE of compiled functions, and assumed of C.  Of samples in C they may also give nothing of use, where the
 * C library keeps something else in rbp: these are among the others, if there is no frame of compiled code in them.
 *
 * With INLINE_LOG, the file of tinyjit --inline-log, a frame stands for as many calls as were inlined where it is: these
 * are put into the chain, and judged like the others.  Without, nothing may have been inlined.
 *
 * Prints "chains N right N skipped N wrong N others N inlined N": of the samples with compiled code or one of its helpers in them,
 * how many are right, how many lack that one caller, how many are anything else; the samples without, whose
 * chains are whole; and how many of the right ones go through an inlined call.  The first few wrong ones go to stderr.  Exit status 0 if the input could be understood, 1 if not.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_INLINED = 8 };
enum { MAX_FUNCTIONS = 64, MAX_NAME = 128, MAX_FRAMES = 2048, MAX_RULES = 65536, SHOWN_WRONG = 5 };

enum builtin { PRINT, NATIVE_MIX, FORGET, BUILTINS };

struct function {
    char name[MAX_NAME];
    bool calls[MAX_FUNCTIONS]; /* by name */
    bool calls_values;
    bool uses[BUILTINS];
};

struct program {
    struct function functions[MAX_FUNCTIONS];
    int function_count;
    bool is_value[MAX_FUNCTIONS]; /* whether its number is taken */
};

enum node_kind { NODE_C, NODE_FUNCTION, NODE_STUB, NODE_COMPILE, NODE_ENTER };

struct node {
    enum node_kind kind;
    int function, tier; /* of functions and stubs */
    bool inlined; /* its code is a part of that of the next frame, which has this name and offset */
    char name[MAX_NAME];
    unsigned long offset;
};

/* From OFFSET in code NAME on, rbp points to the frame or not. */
struct rule {
    char name[MAX_NAME];
    unsigned long offset;
    bool pointer;
};

/* From OFFSET in code NAME on, these functions are inlined, the innermost first. */
struct place {
    char name[MAX_NAME];
    unsigned long offset;
    int functions[MAX_INLINED];
    int function_count;
};

struct checker {
    struct program program;
    struct place *places;
    size_t place_count;
    bool holds[MAX_FUNCTIONS]
              [MAX_FUNCTIONS]; /* the code of the first one holds the second one's, inlined */
    bool frame_pointers;
    struct rule *rules;
    size_t rule_count;
    struct node frames[MAX_FRAMES];
    size_t frame_count;
    size_t right, skipped, wrong, others, inlined;
};

static void fail(const char *where, const char *what)
{
    fprintf(stderr, "chain_check: %s: %s\n", where, what);
    exit(EXIT_FAILURE);
}

/* ---- The script: who calls whom ---- */

/* The next word or character at *AT into TOKEN; false at the end. */
static bool next_token(const char **at, char token[MAX_NAME])
{
    size_t length = 0;
    while (isspace((unsigned char)**at) || **at == '#')
        *at += **at == '#' ? strcspn(*at, "\n") : 1;
    while ((isalnum((unsigned char)**at) || **at == '_') && length + 1 < MAX_NAME)
        token[length++] = *(*at)++;
    if (length == 0 && **at)
        token[length++] = *(*at)++;
    token[length] = '\0';
    return length;
}

static int find_function(const struct program *program, const char *name)
{
    for (int i = 0; i < program->function_count; i++)
        if (strcmp(program->functions[i].name, name) == 0)
            return i;
    return -1;
}

static void take_call(const struct program *program, struct function *caller, const char *name)
{
    static const char *const builtins[BUILTINS] = {"print", "native_mix", "forget"};
    int callee = find_function(program, name);
    if (callee >= 0)
        caller->calls[callee] = true;
    if (strcmp(name, "call") == 0)
        caller->calls_values = true;
    for (int i = 0; i < BUILTINS; i++)
        if (strcmp(name, builtins[i]) == 0)
            caller->uses[i] = true;
}

static void find_names(struct program *program, const char *text)
{
    char token[MAX_NAME], last[MAX_NAME] = "";
    while (next_token(&text, token)) {
        if (strcmp(last, "fn") == 0) {
            if (program->function_count == MAX_FUNCTIONS)
                fail("script", "too many functions");
            strcpy(program->functions[program->function_count++].name, token);
        }
        strcpy(last, token);
    }
}

/* A name before ( is a call, and one behind @ a value, except in forget(@name). */
static void find_calls(struct program *program, const char *text)
{
    char tokens[4][MAX_NAME] = {"", "", "", ""}; /* the newest last */
    struct function *function = NULL;
    while (next_token(&text, tokens[3])) {
        bool definition = strcmp(tokens[1], "fn") == 0;
        int named = find_function(program, definition ? tokens[2] : tokens[3]);
        if (definition)
            function = &program->functions[named];
        else if (function && tokens[3][0] == '(')
            take_call(program, function, tokens[2]);
        if (strcmp(tokens[2], "@") == 0 && strcmp(tokens[0], "forget") != 0 && named >= 0)
            program->is_value[named] = true;
        memmove(tokens[0], tokens[1], 3 * sizeof tokens[0]);
    }
}

static void read_script(struct program *program, const char *path)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "r");
    if (!file)
        fail(path, "can't read it");
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    find_names(program, text);
    find_calls(program, text);
    if (find_function(program, "main") < 0)
        fail(path, "has no function main");
}

/* ---- The code: where rbp points to the frame ---- */

static void read_code(struct checker *checker, const char *path)
{
    char line[512], name[MAX_NAME] = "", kind[16];
    unsigned long offset;
    FILE *file = fopen(path, "r");
    if (!file)
        fail(path, "can't read it");
    checker->frame_pointers = true;
    checker->rules = calloc(MAX_RULES, sizeof *checker->rules);
    while (checker->rules && fgets(line, sizeof line, file)) {
        sscanf(line, "code %*x %*u %127[^\n]", name);
        if (sscanf(line, "frame %lu cfa-%15s", &offset, kind) != 2)
            continue;
        struct rule rule = {.offset = offset, .pointer = strcmp(kind, "rbp") == 0};
        strcpy(rule.name, name);
        if (checker->rule_count < MAX_RULES)
            checker->rules[checker->rule_count++] = rule;
    }
    fclose(file);
}

/* Code of one name is always the same. */
static bool has_pointer(const struct checker *checker, const struct node *node)
{
    bool pointer = false;
    for (size_t i = 0; i < checker->rule_count; i++) {
        const struct rule *rule = &checker->rules[i];
        if (strcmp(rule->name, node->name) == 0 && rule->offset <= node->offset)
            pointer = rule->pointer;
    }
    return pointer;
}

/* ---- Inlined calls ---- */

static bool knows_places_of(const struct checker *checker, const char *name)
{
    for (size_t i = 0; i < checker->place_count; i++)
        if (strcmp(checker->places[i].name, name) == 0)
            return true;
    return false;
}

/* "at OFFSET FUNCTION FILE LINE COLUMN FUNCTION ...", with tabs; the last function is the code's own. */
static void take_place(struct checker *checker, const char *name, char *line)
{
    if (checker->place_count == MAX_RULES)
        fail("inline log", "too long");
    struct place *place = &checker->places[checker->place_count++];
    char *fields[2 + 4 * (MAX_INLINED + 1)];
    int count = 0;
    for (char *field = strtok(line, "\t\n"); field; field = strtok(NULL, "\t\n")) {
        if (count == 2 + 4 * (MAX_INLINED + 1))
            fail(name, "too many inlined calls in each other");
        fields[count++] = field;
    }
    if (count < 6 || count % 4 != 2)
        fail(name, "is not understood in the inline log");
    *place = (struct place){.offset = strtoul(fields[1], NULL, 10)};
    strcpy(place->name, name);
    for (int at = 2; at + 4 < count; at += 4) {
        int function = find_function(&checker->program, fields[at] + strlen("tj::"));
        if (function < 0)
            fail(fields[at], "is inlined, and not in the script");
        place->functions[place->function_count++] = function;
    }
}

static void note_holders(struct checker *checker)
{
    for (size_t i = 0; i < checker->place_count; i++) {
        const struct place *place = &checker->places[i];
        char name[MAX_NAME] = "";
        sscanf(place->name, "tj::%127s", name);
        int holder = find_function(&checker->program, name);
        for (int k = 0; holder >= 0 && k < place->function_count; k++)
            checker->holds[holder][place->functions[k]] = true;
    }
}

/* Code of one name is always the same: the first one's places will do. */
static void read_inline_log(struct checker *checker, const char *path)
{
    char line[8192], name[MAX_NAME] = "";
    bool known = false;
    FILE *file = fopen(path, "r");
    if (!file)
        fail(path, "can't read it");
    checker->places = calloc(MAX_RULES, sizeof *checker->places);
    while (checker->places && fgets(line, sizeof line, file)) {
        if (sscanf(line, "code\t%*x\t%*u\t%127[^\n]", name) == 1)
            known = knows_places_of(checker, name);
        else if (line[0] == 'a' && !known)
            take_place(checker, name, line);
    }
    fclose(file);
    note_holders(checker);
}

static const struct place *find_place(const struct checker *checker, const char *name,
                                      unsigned long offset)
{
    const struct place *found = NULL;
    for (size_t i = 0; i < checker->place_count; i++)
        if (strcmp(checker->places[i].name, name) == 0 && checker->places[i].offset <= offset)
            found = &checker->places[i];
    return found;
}

/* Put the calls that are inlined where the newest frame is in front of it.  All frames but the innermost one have the
 * address behind the call. */
static void add_inlined(struct checker *checker)
{
    struct node node = checker->frames[checker->frame_count - 1];
    bool behind = checker->frame_count > 1 && node.offset > 0;
    const struct place *place = find_place(checker, node.name, node.offset - behind);
    int count = place ? place->function_count : 0;
    if (checker->frame_count + (size_t)count > MAX_FRAMES)
        fail(node.name, "the chain is too long");
    for (int i = 0; i < count; i++) {
        struct node *inlined = &checker->frames[checker->frame_count - 1];
        *inlined = node;
        inlined->inlined = true;
        inlined->function = place->functions[i];
        checker->frames[checker->frame_count++] = node;
    }
}

/* ---- Who may call whom ---- */

static bool calls_function(const struct program *program, int caller, int callee)
{
    const struct function *function = &program->functions[caller];
    return function->calls[callee] || (function->calls_values && program->is_value[callee]);
}

static bool calls_any(const struct program *program, int caller)
{
    for (int i = 0; i < program->function_count; i++)
        if (calls_function(program, caller, i))
            return true;
    return false;
}

/* native_mix itself is there because the helper jumps to it. */
static const struct helper {
    const char *name;
    int builtin; /* or BUILTINS */
} helpers[] = {{"help_print", PRINT},   {"help_native_mix", NATIVE_MIX}, {"native_mix", NATIVE_MIX},
               {"help_forget", FORGET}, {"help_hot", BUILTINS},          {"help_compile", BUILTINS},
               {"help_fail", BUILTINS}};

enum { HELPERS = sizeof helpers / sizeof helpers[0] };

static const struct helper *find_helper(const char *name)
{
    for (int i = 0; i < HELPERS; i++)
        if (strncmp(name, helpers[i].name, strlen(helpers[i].name)) == 0)
            return &helpers[i];
    return NULL;
}

static bool calls_c(const struct program *program, const struct node *caller, const char *callee)
{
    const struct helper *helper = find_helper(callee);
    if (caller->kind == NODE_C)
        return true;
    if (!helper)
        return false;
    if (caller->kind != NODE_FUNCTION)
        return caller->kind == NODE_COMPILE && strcmp(helper->name, "help_compile") == 0;
    if (helper->builtin < BUILTINS)
        return program->functions[caller->function].uses[helper->builtin];
    return strcmp(helper->name, "help_hot") == 0 ? caller->tier == 1
                                                 : strcmp(helper->name, "help_fail") == 0;
}

static bool may_call(const struct program *program, const struct node *caller,
                     const struct node *callee)
{
    bool by_function = caller->kind == NODE_FUNCTION, by_entry = caller->kind == NODE_ENTER;
    if (strcmp(caller->name, "[unknown]") == 0)
        return false;
    switch (callee->kind) {
    case NODE_C:
        return calls_c(program, caller, callee->name);
    case NODE_ENTER:
        return caller->kind == NODE_C;
    case NODE_COMPILE:
        return by_entry || (by_function && calls_any(program, caller->function));
    default:
        return (by_function && calls_function(program, caller->function, callee->function)) ||
               (by_entry && strcmp(program->functions[callee->function].name, "main") == 0);
    }
}

static bool is_between(const struct program *program, const struct node *caller,
                       struct node between, const struct node *callee)
{
    return may_call(program, caller, &between) && may_call(program, &between, callee);
}

/* Whether CALLER may have called the code of FUNCTION, and a function that is inlined there CALLEE. */
static bool is_between_inlined(const struct checker *checker, const struct node *caller,
                               int function, const struct node *callee)
{
    struct node code = {.kind = NODE_FUNCTION, .function = function, .tier = 2}, inlined = code;
    if (!may_call(&checker->program, caller, &code))
        return false;
    for (int i = 0; i < checker->program.function_count; i++) {
        inlined.function = i;
        if (checker->holds[function][i] && may_call(&checker->program, &inlined, callee))
            return true;
    }
    return false;
}

/* Whether CALLER may have called somebody who called CALLEE. */
static bool may_call_caller(const struct checker *checker, const struct node *caller,
                            const struct node *callee)
{
    const struct program *program = &checker->program;
    struct node between = {.kind = NODE_FUNCTION};
    for (int i = 0; i < 2 * program->function_count; i++) {
        between.function = i / 2;
        between.tier = 1 + i % 2;
        if (is_between(program, caller, between, callee) ||
            is_between_inlined(checker, caller, between.function, callee))
            return true;
    }
    between.kind = NODE_C;
    for (int i = 0; i < HELPERS; i++) {
        strcpy(between.name, helpers[i].name);
        if (is_between(program, caller, between, callee))
            return true;
    }
    return is_between(program, caller, (struct node){.kind = NODE_COMPILE}, callee) ||
           is_between(program, caller, (struct node){.kind = NODE_ENTER}, callee);
}

/* ---- Chains ---- */

static bool is_compiled(const struct node *node)
{
    return node->kind != NODE_C;
}

/* Constructors of libraries run before a program's own _start, called from ld.so's. */
static bool is_start(const char *name)
{
    return strcmp(name, "_start") == 0 || strcmp(name, "_dl_start_user") == 0;
}

/* How many frames, from the innermost on, must be right; 0: they don't get to main(). */
static size_t checked_frames(const struct checker *checker)
{
    size_t count = checker->frame_count;
    if (!checker->frame_pointers)
        return is_start(checker->frames[count - 1].name) ? count : 0;
    while (count && strcmp(checker->frames[count - 1].name, "main") != 0)
        count--;
    return count;
}

enum verdict { RIGHT, SKIPPED, WRONG };

/* Whether the frames from FROM up to TO could have called each other. */
static bool is_possible(const struct checker *checker, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (!may_call(&checker->program, &checker->frames[i + 1], &checker->frames[i]))
            return false;
    return true;
}

/* One frame of the machine is as many here as calls are inlined in it, and one more: the last of these, then the next. */
static enum verdict judge(const struct checker *checker)
{
    const struct node *frames = checker->frames;
    size_t count = checked_frames(checker), last = 0;
    if (count == 0 || strcmp(frames[0].name, "[unknown]") == 0)
        return WRONG;
    while (frames[last].inlined)
        last++;
    size_t next = last + 1;
    bool unset = !is_compiled(&frames[0]) || !has_pointer(checker, &frames[0]);
    if (next >= count || !checker->frame_pointers || !unset ||
        may_call(&checker->program, &frames[next], &frames[last]))
        return is_possible(checker, 0, count - 1) ? RIGHT : WRONG;
    return may_call_caller(checker, &frames[next], &frames[last]) &&
                   is_possible(checker, 0, last) && is_possible(checker, next, count - 1)
               ? SKIPPED
               : WRONG;
}

static void print_chain(const struct checker *checker)
{
    fprintf(stderr, "chain_check: wrong:");
    for (size_t i = 0; i < checker->frame_count && i < 40; i++)
        if (checker->frames[i].inlined)
            fprintf(stderr, "%s %s in", i ? " <-" : "",
                    checker->program.functions[checker->frames[i].function].name);
        else
            fprintf(stderr, "%s %s+0x%lx", i ? " <-" : "", checker->frames[i].name,
                    checker->frames[i].offset);
    fprintf(stderr, "\n");
}

/* There is no telling who called the C library. */
static bool is_lost_in_c(const struct checker *checker)
{
    const struct node *innermost = &checker->frames[0];
    return checker->frame_pointers && innermost->kind == NODE_C &&
           strcmp(innermost->name, "[unknown]") != 0;
}

static void take_chain(struct checker *checker)
{
    bool ours = false, inlined = false;
    for (size_t i = 0; i < checker->frame_count; i++) {
        ours |= is_compiled(&checker->frames[i]) || find_helper(checker->frames[i].name);
        inlined |= checker->frames[i].inlined;
    }
    if (checker->frame_count == 0)
        return;
    enum verdict verdict = judge(checker);
    if (verdict == WRONG && !ours && is_lost_in_c(checker))
        verdict = SKIPPED;
    if (verdict == WRONG && checker->wrong++ < SHOWN_WRONG)
        print_chain(checker);
    else if (verdict != WRONG && !ours)
        checker->others++;
    else if (verdict != WRONG)
        ++*(verdict == RIGHT ? &checker->right : &checker->skipped);
    checker->inlined += verdict == RIGHT && inlined;
    checker->frame_count = 0;
}

/* ---- perf script ---- */

static void fill_node(const struct program *program, struct node *node)
{
    char name[MAX_NAME];
    if (strncmp(node->name, "tj::", 4) != 0)
        return;
    if (strcmp(node->name, "tj::[stub] enter") == 0) {
        node->kind = NODE_ENTER;
    } else if (strcmp(node->name, "tj::[stub] compile") == 0) {
        node->kind = NODE_COMPILE;
    } else if (sscanf(node->name, "tj::[stub] %127s", name) == 1) {
        node->kind = NODE_STUB;
        node->function = find_function(program, name);
    } else if (sscanf(node->name, "tj::%127s [tier%d]", name, &node->tier) == 2) {
        node->kind = NODE_FUNCTION;
        node->function = find_function(program, name);
    }
    if (node->function < 0)
        fail(node->name, "is not in the script");
}

/* "  55d0c0a1b2c3 tj::fib [tier2]+0x1c" */
static void take_line(struct checker *checker, char *line)
{
    int at = 0;
    line[strcspn(line, "\n")] = '\0';
    if (line[strspn(line, " \t")] == '\0') {
        take_chain(checker);
        return;
    }
    if (sscanf(line, " %*x %n", &at) != 0 || !at)
        fail(line, "not a line of perf script -F ip,sym,symoff");
    if (checker->frame_count == MAX_FRAMES)
        fail(line, "the chain is too long");
    struct node *node = &checker->frames[checker->frame_count++];
    *node = (struct node){.kind = NODE_C};
    char *plus = strrchr(line, '+');
    if (plus) {
        node->offset = strtoul(plus + 1, NULL, 16);
        *plus = '\0';
    }
    snprintf(node->name, sizeof node->name, "%.*s", MAX_NAME - 1, line + at);
    fill_node(&checker->program, node);
    add_inlined(checker);
}

static int usage(void)
{
    fprintf(stderr,
            "usage: perf script -F ip,sym,symoff | chain_check [-i INLINE_LOG] SCRIPT [CODE]\n");
    return 2;
}

int main(int argc, char **argv)
{
    static struct checker checker;
    const char *inline_log = NULL;
    char *line = NULL;
    size_t line_bytes = 0;
    for (int option; (option = getopt(argc, argv, "i:")) != -1;) {
        if (option != 'i')
            return usage();
        inline_log = optarg;
    }
    if (argc - optind < 1 || argc - optind > 2)
        return usage();
    read_script(&checker.program, argv[optind]);
    if (argc - optind == 2)
        read_code(&checker, argv[optind + 1]);
    if (inline_log)
        read_inline_log(&checker, inline_log);
    while (getline(&line, &line_bytes, stdin) > 0)
        take_line(&checker, line);
    take_chain(&checker);
    printf("chains %zu right %zu skipped %zu wrong %zu others %zu inlined %zu\n",
           checker.right + checker.skipped + checker.wrong, checker.right, checker.skipped,
           checker.wrong, checker.others, checker.inlined);
    free(line);
    free(checker.rules);
    free(checker.places);
    return EXIT_SUCCESS;
}
