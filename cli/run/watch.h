/* `oriel run --watch`: one process of the job shows the state of all ranks on the launcher's
 * terminal. */
#ifndef ORIEL_CLI_RUN_WATCH_H
#define ORIEL_CLI_RUN_WATCH_H

/* Runs in the process that becomes the program. Enables counting of operations; on rank 0, starts
 * the watcher. The watcher is not a child of the program and ends with it. */
void oriel_watch_start(void);

#endif
