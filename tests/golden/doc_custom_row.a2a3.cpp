// doc_custom_row.pto:1:1: error PTO-P008: C++ cannot say this pto.mscatter: MSCATTER of a2a3 has no ScatterConflict: the last write wins.
