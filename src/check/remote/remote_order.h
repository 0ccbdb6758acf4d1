/* Order and call sites of several nodes: connects order.c and call_sites.c to the servers of other
 * nodes. */
#ifndef ORIEL_CHECK_REMOTE_REMOTE_ORDER_H
#define ORIEL_CHECK_REMOTE_REMOTE_ORDER_H

void oriel_check_remote_order_set(void);

#endif
