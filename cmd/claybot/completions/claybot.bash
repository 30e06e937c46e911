# bash completion for claybot. It asks the program itself, so it always fits the version.
_claybot() {
	local line=${COMP_LINE:0:COMP_POINT} words cur value
	IFS=$' \t\n' read -ra words <<<"$line"
	[[ $line != *[[:space:]] ]] || words+=("")
	cur=${words[${#words[@]} - 1]}
	# Readline completes only what follows these characters.
	local before=${cur%"${cur##*[=:]}"} IFS=$'\n'
	COMPREPLY=()
	while IFS=$'\t' read -r value _; do
		case $value in
		:files) compopt -o default 2>/dev/null || COMPREPLY=($(compgen -f -- "${cur#*=}")) ;;
		:dirs) compopt -o dirnames 2>/dev/null || COMPREPLY=($(compgen -d -- "${cur#*=}")) ;;
		*) COMPREPLY+=("${value#"$before"}") ;;
		esac
	done < <("${words[0]/#\~/$HOME}" complete "${words[@]:1}" 2>/dev/null)
}
complete -F _claybot claybot
