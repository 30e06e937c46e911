#compdef claybot
# zsh completion for claybot. It asks the program itself, so it always fits the version.
_claybot() {
	local line
	local -a all
	for line in "${(@f)$("${(Q)words[1]/#\~/$HOME}" complete "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}"; do
		case $line in
		:files) compset -P '*=' ; _files ;;
		:dirs) compset -P '*=' ; _files -/ ;;
		?*) all+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
		esac
	done
	(( $#all )) && _describe claybot all
}
if [[ $funcstack[1] == _claybot ]]; then
	_claybot "$@"
else
	compdef _claybot claybot
fi
