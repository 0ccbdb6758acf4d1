/* `oriel run --watch`: one process of the job's shows what all do, on the launcher's terminal.  run.c calls. */
#ifndef ORIEL_CLI_RUN_WATCH_H
#define ORIEL_CLI_RUN_WATCH_H

/* In the process that is about to become the program: has its operations counted; rank 0's starts the watcher, which is no child
 * of it and ends with it. */
void oriel_watch_start(void);

#endif
