# fish completion for claybot. It asks the program itself, so it always fits the version.
function __claybot_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] complete $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$current"
            case :dirs
                __fish_complete_directories "$current"
            case '*'
                echo $line
        end
    end
end
complete -c claybot -f -a '(__claybot_complete)'
