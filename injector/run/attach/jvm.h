/* Requests to a running JVM by its attach interface, as jcmd sends them, without a jcmd: a JRE has
 * none, and it would have to run in the JVM's container. */
#ifndef PERFJIT_JVM_H
#define PERFJIT_JVM_H

#include "injector/recording/host/live_process.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

enum { JVM_TEXT_BYTES = 160, JVM_NAME_BYTES = 32, JVM_ANSWER_BYTES = 400, JVM_WORDS = 4 };

struct jvm {
    pid_t pid;
    struct live_process live;
    int tmp; /* its /tmp; -1: it can't be opened */
};

/* Open process PID.  Returns 0, or -1 with the reason in TEXT.  Release with jvm_close in either
 * case. */
int jvm_open(struct jvm *jvm, pid_t pid, char text[JVM_TEXT_BYTES]);

/* The name of one of its files in /tmp: BEFORE, its own pid, BEHIND. */
const char *jvm_file_name(const struct jvm *jvm, const char *before, const char *behind,
                          char name[JVM_NAME_BYTES]);

/* Whether its file of that name is there, of that type and its user's. */
bool jvm_has_file(const struct jvm *jvm, const char *before, const char *behind, mode_t type);

/* Ask for the WORDS, a command and its three arguments.  Returns 0 with the ANSWER, as far as it
 * fits; or -1 with the reason in TEXT: it takes no requests, or does not answer. */
int jvm_request(const struct jvm *jvm, const char *const words[JVM_WORDS],
                char answer[JVM_ANSWER_BYTES], char text[JVM_TEXT_BYTES]);

/* What ANSWER says in its second line, behind the number. */
const char *jvm_answer_text(char *answer);

void jvm_close(struct jvm *jvm);

#endif
