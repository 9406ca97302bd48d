/* Loading perfjit's agent into a running JVM, as `jcmd PID JVMTI.agent_load` does.  It stays there,
 * and has no dump until one is asked for (attachment.h). */
#ifndef PERFJIT_JAVA_AGENT_H
#define PERFJIT_JAVA_AGENT_H

#include "injector/run/attach/jvm.h"

/* The agent's file name, if process PID is a JVM; else NULL. */
const char *java_agent_for(pid_t pid);

/* Have AGENT in process PID, unless it is there already.  Returns 0, or -1 with the reason in
 * TEXT. */
int java_agent_load(pid_t pid, const char *agent, char text[JVM_TEXT_BYTES]);

#endif
