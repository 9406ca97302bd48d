/* Having a running JVM write its perf map, as `jcmd PID Compiler.perfmap` does (JDK 17), without a
 * jcmd: a JRE has none, and it would have to run in the JVM's container. */
#ifndef PERFJIT_JAVA_MAP_H
#define PERFJIT_JAVA_MAP_H

#include <stdbool.h>
#include <sys/types.h>

enum { JAVA_MAP_TEXT_BYTES = 160 };

/* Have process PID write it.  Returns 0, or -1 with the reason in TEXT. */
int java_map_write(pid_t pid, char text[JAVA_MAP_TEXT_BYTES]);

/* Whether the map of PID is there. */
bool java_map_is_there(pid_t pid);

/* Remove the map of PID, which is the process's user's. */
void java_map_remove(pid_t pid);

#endif
