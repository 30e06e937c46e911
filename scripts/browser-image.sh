#!/usr/bin/env bash
# Makes the Docker image claybot-test:browser for the tests of browser_*: this
# machine's Chromium with the libraries and fonts that it needs, and busybox for
# the rest. Nothing is downloaded. An image of the same Chromium, made by this
# same script, is left as it is. Safe to repeat, also at the same time.
set -euo pipefail

image=claybot-test:browser
program=/usr/lib/chromium/chromium
busybox=$(command -v busybox || true)

fail() {
	echo "browser-image: $1" >&2
	exit 1
}

[ -x "$program" ] || fail "there is no $program; apt-get install chromium"
[ -n "$busybox" ] || fail "there is no busybox; apt-get install busybox-static"
if ldd "$busybox" >/dev/null 2>&1; then
	fail "$busybox needs libraries; apt-get install busybox-static"
fi
docker version --format '{{.Server.Version}}' >/dev/null 2>&1 || fail "no Docker engine answers"

exec 9>"${TMPDIR:-/tmp}/claybot-browser-image.lock"
flock 9

mark="$("$program" --version 2>/dev/null | head -n 1) $(sha256sum "$0" | cut -c 1-12)"
have=$(docker image inspect --format '{{index .Config.Labels "claybot.test.browser"}}' "$image" 2>/dev/null || true)
if [ "$have" = "$mark" ]; then
	echo "browser-image: $image is there: $mark"
	exit 0
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,usr/lib/chromium/locales,etc,tmp,work,proc,dev,sys,var,run,lib64,usr/share/fonts}
chmod 1777 "$root/tmp"

cp "$busybox" "$root/bin/busybox"
for applet in $("$busybox" --list-full); do
	case $applet in
	*/busybox) ;;
	*) mkdir -p "$root/$(dirname "$applet")" && ln -sf /bin/busybox "$root/$applet" ;;
	esac
done

# Hard links where they are possible: nothing is written to these files.
copy() { cp -l "$@" 2>/dev/null || cp "$@"; }
for file in chromium icudtl.dat resources.pak chrome_100_percent.pak v8_context_snapshot.bin snapshot_blob.bin; do
	[ ! -e "/usr/lib/chromium/$file" ] || copy "/usr/lib/chromium/$file" "$root/usr/lib/chromium/"
done
copy /usr/lib/chromium/locales/en-US.pak "$root/usr/lib/chromium/locales/"
ln -s ../lib/chromium/chromium "$root/usr/bin/chromium"

# What it is linked with, and what its cryptography loads by name.
nss=$(dirname "$(ldd "$program" | awk '$1 == "libnss3.so" { print $3 }')")
loaded=()
for lib in libsoftokn3.so libfreebl3.so libfreeblpriv3.so libnssckbi.so; do
	for dir in "$nss" "$nss/nss"; do
		[ ! -e "$dir/$lib" ] || loaded+=("$dir/$lib")
	done
done
ldd "$program" ${loaded[@]+"${loaded[@]}"} | awk '$3 ~ /^\// { print $3 } $1 ~ /^\// && $1 !~ /:$/ { print $1 }' | sort -u |
	while read -r lib; do
		mkdir -p "$root$(dirname "$lib")"
		cp -L "$lib" "$root$lib"
	done
for lib in ${loaded[@]+"${loaded[@]}"}; do
	mkdir -p "$root$(dirname "$lib")"
	cp -L "$lib" "$root$lib"
done

[ ! -d /etc/fonts ] || cp -rL /etc/fonts "$root/etc/"
[ ! -d /usr/share/fonts/truetype/dejavu ] || cp -rL /usr/share/fonts/truetype/dejavu "$root/usr/share/fonts/"
printf 'root:x:0:0::/:/bin/sh\nagent:x:10001:10001::/work:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nagent:x:10001:\n' >"$root/etc/group"

tar -C "$root" --numeric-owner --owner=0 --group=0 -cf - . | docker import \
	--change "LABEL claybot.test.browser=\"$mark\"" \
	--change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
	- "$image" >/dev/null
echo "browser-image: made $image: $mark"
