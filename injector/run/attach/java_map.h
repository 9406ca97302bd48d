/* Having a running JVM write its perf map, as `jcmd PID Compiler.perfmap` does (JDK 17). */
#ifndef PERFJIT_JAVA_MAP_H
#define PERFJIT_JAVA_MAP_H

#include "injector/run/attach/jvm.h"

/* Have process PID write it.  Returns 0, or -1 with the reason in TEXT. */
int java_map_write(pid_t pid, char text[JVM_TEXT_BYTES]);

/* Whether the map of PID is there. */
bool java_map_is_there(pid_t pid);

/* Remove the map of PID, which is the process's user's. */
void java_map_remove(pid_t pid);

#endif
