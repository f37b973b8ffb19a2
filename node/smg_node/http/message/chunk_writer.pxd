# That there is this file has chunking.py compiled; there is nothing in it whose type would be worth telling.
