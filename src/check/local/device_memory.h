/* Memory of GPUs, which only findings name: the checker compares addresses, and reads no memory of
 * the program. */
#ifndef ORIEL_CHECK_LOCAL_DEVICE_MEMORY_H
#define ORIEL_CHECK_LOCAL_DEVICE_MEMORY_H

/* The number of the GPU in whose memory the address is, as this process counts them; -1: of none.
 * Asks the driver, if the program has loaded it. Thread-safe. */
int oriel_local_device(const void *address);

#endif
