rchar: 38648996
wchar: 1723
syscr: 485
syscw: 20
read_bytes: 2936832
write_bytes: 20480
cancelled_write_bytes: 0
