/* Order and call sites over machines: what order.c and sites.c ask for when it is not on this board.  afar.c calls. */
#ifndef ORIEL_CHECK_AFAR_ORDER_H
#define ORIEL_CHECK_AFAR_ORDER_H

void oriel_afar_order_span(void);

#endif
