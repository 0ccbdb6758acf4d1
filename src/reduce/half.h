/* The kernels of 16-bit reals (IEEE binary16) and complex numbers of them. Compilers differ in
 * their support of the type, so it is computed as float. Each result is the correctly rounded one,
 * except for products of complex numbers, which are rounded twice. */
#ifndef ORIEL_REDUCE_HALF_H
#define ORIEL_REDUCE_HALF_H

#include "reduce/kind.h"

oriel_kernel oriel_half_max, oriel_half_min, oriel_half_sum, oriel_half_prod;
oriel_element oriel_half_max_native, oriel_half_min_native, oriel_half_sum_native,
    oriel_half_prod_native;
oriel_kernel oriel_half_complex_sum, oriel_half_complex_prod;

#endif
