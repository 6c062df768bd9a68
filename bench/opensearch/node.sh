#!/usr/bin/env bash
# A real OpenSearch node for the benchmark and for test/compat, made from the artifacts that are on Maven
# Central. Needs Maven and a JDK of version 21 or newer, found by JAVA_HOME or in the usual
# places.
#
#	node.sh build             fetch the libraries (62 MB) and compile, into ./build
#	node.sh start FOLDER PORT [SETTING=VALUE...]
#	                          run a node in the foreground, its data in FOLDER
#	node.sh jdk               print the JDK that it would use; fails when there is none
#
# HEAP (1g) is the size of the heap. With UNTIL_EOF in the environment the node ends with its
# input.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# jdk prints the home of the first JDK that is new enough.
jdk() {
	local home major
	for home in "${JAVA_HOME:-}" /usr/lib/jvm/* /opt/*; do
		[[ -x $home/bin/javac ]] || continue
		major=$("$home/bin/javac" -version 2>&1 | sed -E 's/^javac ([0-9]+).*/\1/')
		if ((major >= 21)); then
			printf '%s\n' "$home"
			return
		fi
	done
	echo "node.sh: no JDK 21 or newer in JAVA_HOME, /usr/lib/jvm or /opt" >&2
	return 1
}

case ${1:-} in
jdk)
	jdk
	;;
build)
	JAVA_HOME=$(jdk)
	export JAVA_HOME
	command -v mvn >/dev/null || { echo "node.sh: Maven (mvn) is not installed" >&2; exit 1; }
	mkdir -p "$here/build/classes"
	mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$here/build/lib"
	"$JAVA_HOME/bin/javac" -nowarn -d "$here/build/classes" -cp "$here/build/lib/*" "$here"/*.java
	;;
start)
	folder=${2:?the data folder} port=${3:?the port}
	shift 3
	heap=${HEAP:-1g}
	exec "$(jdk)/bin/java" "-Xms$heap" "-Xmx$heap" -XX:+UseG1GC \
		--enable-native-access=ALL-UNNAMED --add-modules=jdk.incubator.vector \
		-Dlog4j2.configurationFile="$here/log4j2.properties" -Dlog4j2.disable.jmx=true \
		-Dopensearch.path.home="$folder" -Dopensearch.distribution.type=tar \
		-cp "$here/build/classes:$here/build/lib/*" OneNode "$folder" "$port" "$@"
	;;
*)
	sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
	exit 2
	;;
esac
