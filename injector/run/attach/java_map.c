/* See java_map.h. */
#include "injector/run/attach/java_map.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int java_map_write(pid_t pid, char text[JVM_TEXT_BYTES])
{
    static const char *const words[JVM_WORDS] = {"jcmd", "Compiler.perfmap", "", ""};
    struct jvm jvm;
    char answer[JVM_ANSWER_BYTES];
    int result = jvm_open(&jvm, pid, text);
    if (!result)
        result = jvm_request(&jvm, words, answer, text);
    if (!result && strncmp(answer, "0\n", 2)) {
        snprintf(text, JVM_TEXT_BYTES, "it says: %.80s (JDK 17 or later has Compiler.perfmap)",
                 jvm_answer_text(answer));
        result = -1;
    }
    jvm_close(&jvm);
    return result;
}

bool java_map_is_there(pid_t pid)
{
    struct jvm jvm;
    char text[JVM_TEXT_BYTES];
    bool there = jvm_open(&jvm, pid, text) == 0 && jvm_has_file(&jvm, "perf-", ".map", S_IFREG);
    jvm_close(&jvm);
    return there;
}

void java_map_remove(pid_t pid)
{
    struct jvm jvm;
    char text[JVM_TEXT_BYTES], name[JVM_NAME_BYTES];
    if (jvm_open(&jvm, pid, text) == 0 && jvm_has_file(&jvm, "perf-", ".map", S_IFREG))
        unlinkat(jvm.tmp, jvm_file_name(&jvm, "perf-", ".map", name), 0);
    jvm_close(&jvm);
}
