/* See java_agent.h.
 *
 *     "1" "load" LIBRARY "true" OPTIONS    a request; "true": the library's path is whole
 *     "0\nreturn code: 0\n"                its answer ("0\n0\n" before JDK 9); or a text that says
 *                                          why the library was not loaded
 */
#include "injector/run/attach/java_agent.h"

#include "injector/run/attach/switch_list.h"
#include "injector/run/program/agent_file.h"
#include "injector/run/program/program.h"
#include "injector/text/file_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { START_MS = 5000, TRY_MS = 100 };

const char *java_agent_for(pid_t pid)
{
    const struct runtime *runtime = program_of_process(pid);
    return runtime ? runtime->agent : NULL;
}

static bool is_agent(const char *path, void *context)
{
    const char *agent = context;
    return strncmp(file_name_of(path), agent, strlen(agent)) == 0;
}

/* Whether PID can be asked, and has AGENT in its memory. */
static bool is_loaded(pid_t pid, const char *agent)
{
    struct switch_list pages;
    const bool can_be_asked = switch_list_read(&pages, pid) == 0 && pages.count > 0;
    switch_list_free(&pages);
    return can_be_asked && program_has_mapped(pid, is_agent, (void *)(uintptr_t)agent);
}

/* Whether ANSWER is that of a JVM that has just begun: the agent's own, or that of JDK 21. */
static bool is_starting(const char *answer)
{
    return strncmp(answer, "0\nreturn code: -1", 17) == 0 || strstr(answer, "live phase");
}

static int load(const struct jvm *jvm, const char *library, char text[JVM_TEXT_BYTES])
{
    const char *const words[JVM_WORDS] = {"load", library, "true", "attach"};
    char answer[JVM_ANSWER_BYTES] = "";
    for (int ms = 0; ms < START_MS; ms += TRY_MS) {
        if (jvm_request(jvm, words, answer, text))
            return -1;
        if (strncmp(answer, "0\nreturn code: 0", 16) == 0 || strncmp(answer, "0\n0", 3) == 0)
            return 0;
        if (!is_starting(answer))
            break;
        nanosleep(&(struct timespec){.tv_nsec = TRY_MS * 1000000L}, NULL);
    }
    const char *said = jvm_answer_text(answer);
    snprintf(text, JVM_TEXT_BYTES, "it says: %.120s", *said ? said : "nothing");
    return -1;
}

int java_agent_load(pid_t pid, const char *agent, char text[JVM_TEXT_BYTES])
{
    struct jvm jvm;
    if (is_loaded(pid, agent))
        return 0;
    int result = jvm_open(&jvm, pid, text);
    char root[LIVE_ROOT_BYTES];
    char *library =
        result ? NULL : agent_file_find(agent, live_process_root(root, (uint32_t)pid), true);
    if (!result && !library) {
        snprintf(text, JVM_TEXT_BYTES, "%s is not installed where it can read it", agent);
        result = -1;
    }
    if (!result)
        result = load(&jvm, library, text);
    free(library);
    jvm_close(&jvm);
    return result;
}
