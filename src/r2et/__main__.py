"""python -m r2et"""

from r2et.cli import main

main()
