"""Claims of nodes about limits, compared with what the cluster did. Pure.

`admissions` is what happened, from the records of clients and engines alone; `remaining`, `retries`,
`reasons` and `reported_use` each compare one kind of claim with it. A claim is called wrong where no
order of events that is possible makes it true: what overlapped may have happened in any order.
"""
