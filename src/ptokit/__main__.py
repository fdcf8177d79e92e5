from ptokit.cli import main

main()
