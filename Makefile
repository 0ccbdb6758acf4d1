# Short names for common uses of CMake and Ninja.
#
#   make                       builds the library and the command into build/, without tests
#   make demo [HOST=mpich]     installs what is missing, builds, compares each host with Oriel
#   make test | test-full      installs all that the tests need, builds them, runs them
#   make test-hosts            make test on Debian 13 and sid, as root and, in part, as a user
#   make release-check [MINUTES=n]  all that a release has to pass; continues where it stopped
#   make tests                 builds the tests
#   make bench                 times one-sided patterns on each host and with Oriel
#   make install | uninstall [PREFIX=/usr/local] [DESTDIR=...]
#   make deb                   Debian packages, into build/packages
#   make docs                  the site of docs/, into build/site
#   make dist                  the release tarball, with the HTML bundles, into build
#   make faults [ROUNDS=n]     kills ranks at random times, n rounds on each host
#   make soak [MINUTES=n]      random programs with known results, until one fails
#   make lint                  clang-tidy and cppcheck
#   make coverage              which lines the tests execute, and whether the others have a reason
#   make fuzz [MINUTES=n]      fuzzes the parsers of outside data, n minutes in total
#   make BUILD=build-clang CC=clang         another compiler, in a folder of its own
#   make BUILD=build-asan SANITIZE=address,undefined
#
# Each build folder has one configuration: CC and SANITIZE are read when the folder is created.

BUILD    ?= build
PREFIX   ?= /usr/local
DESTDIR  ?=
SANITIZE ?=
ARGS     ?=
MINUTES  ?= 10
ROUNDS   ?= 100
COVERAGE_BUILD ?= build-coverage

# make presets CC and CXX. Only values that the user chose are passed on. With clang, CXX is
# clang++.
ifneq ($(origin CC),default)
  CONFIGURE += -DCMAKE_C_COMPILER=$(CC)
  ifneq ($(filter clang%,$(notdir $(CC))),)
    CXX_CHOSEN = $(if $(findstring /,$(CC)),$(dir $(CC)))$(patsubst clang%,clang++%,$(notdir $(CC)))
  endif
endif
ifneq ($(origin CXX),default)
  CXX_CHOSEN = $(CXX)
endif
ifneq ($(CXX_CHOSEN),)
  CONFIGURE += -DCMAKE_CXX_COMPILER=$(CXX_CHOSEN)
endif
ifneq ($(SANITIZE),)
  CONFIGURE += -DSANITIZE=$(SANITIZE)
endif
ifneq ($(COVERAGE),)
  CONFIGURE += -DCOVERAGE=$(COVERAGE)
endif

# Each test declares how many processors it needs; one that needs more than the node has runs alone.
# Most tests wait for launchers and for each other much of the time, so ctest uses four times the
# number of processors.
CTEST = ctest --test-dir $(BUILD) --output-on-failure --no-tests=error \
        -j $$((4 * $(shell nproc)))

# The scripts below find the built programs by this variable.
export BUILD

# One host for the demo. Some shells export a HOST of their own.
ifeq ($(origin HOST),command line)
  DEMO_HOST = $(HOST)
endif

# Status 1: packages are missing and could not be installed. The build then leaves out what needs
# them, or names what it cannot do without.
DEPS = scripts/install-deps $(1) || test $$? -eq 1

.PHONY: help all tests configure ready demo test test-hosts test-full release-check lint coverage \
        faults fuzz soak bench install uninstall deb dist docs clean

all: configure
	cmake --build $(BUILD)

tests: configure
	cmake --build $(BUILD) --target all tests/all

configure: $(BUILD)/build.ninja

$(BUILD)/build.ninja:
	@for tool in cmake ninja; do command -v $$tool >/dev/null || \
	    { echo "oriel: no $$tool: run scripts/install-deps build" >&2; exit 1; }; done
	cmake -S . -B $(BUILD) -G Ninja $(CONFIGURE)

demo:
	@$(call DEPS,build $(DEMO_HOST))
	$(MAKE) all
	$(BUILD)/bin/oriel demo $(addprefix --host=,$(DEMO_HOST)) $(ARGS)

ready:
	@$(call DEPS,test)
	$(MAKE) tests

test: ready
	$(CTEST) -L quick $(ARGS)

# In systems of their own, which are made in ~/.cache/oriel/roots.
test-hosts:
	scripts/release-check --suite trixie trixie-user sid sid-user $(ARGS)

test-full: ready
	$(CTEST) $(ARGS)

release-check:
	scripts/release-check $(if $(filter command line,$(origin MINUTES)),--minutes $(MINUTES)) $(ARGS)

lint: ready
	scripts/lint --build $(BUILD) $(ARGS)

coverage:
	@$(call DEPS,test)
	$(MAKE) tests BUILD=$(COVERAGE_BUILD) COVERAGE=ON
	scripts/coverage --build $(COVERAGE_BUILD) $(ARGS)

faults: ready
	for host in mpich openmpi; do \
	    test ! -x $(BUILD)/tests/mpi/$$host/faults_random || \
	        tests/mpi/faults.py --launch tests/launch --build $(BUILD) --host $$host \
	        --rounds $(ROUNDS) $(ARGS) $(BUILD)/tests/mpi/$$host/faults_random || exit 1; \
	done

fuzz: ready
	tests/fuzz/parsers/run.py --build $(BUILD) --minutes $(MINUTES) $(ARGS)

soak: ready
	tests/soak/run.py --build $(BUILD) --minutes $(MINUTES) $(ARGS)

bench:
	@$(call DEPS,build)
	$(MAKE) all
	$(BUILD)/bin/oriel bench --quick $(ARGS)

# The folders of an installation as absolute paths without a slash at the end. The shell reads them
# from the environment, because make's own functions split them at blanks.
install uninstall: export PREFIX := $(PREFIX)
install uninstall: export DESTDIR := $(DESTDIR)
PLACE = prefix=$$(realpath -ms -- "$${PREFIX:?is empty}") && \
    DESTDIR=$${DESTDIR:+$$(realpath -ms -- "$$DESTDIR")} && DESTDIR=$${DESTDIR%/}

# uninstall removes the last installation from a build folder. CMake makes files readable to all
# users, but not folders, so umask does.
install: all
	@$(PLACE) && umask 022 && cmake --install $(BUILD) --prefix "$$prefix"

uninstall:
	@$(PLACE) && scripts/uninstall $(BUILD) "$$prefix"

deb: all
	cd $(BUILD) && cpack
	@cmake -D "ORIEL_BUILD=$$(realpath $(BUILD))" -P packaging/after.cmake

dist: all
	scripts/dist $(BUILD)

docs:
	@command -v mkdocs >/dev/null || \
	    { echo "oriel: no mkdocs: scripts/install-deps test installs it" >&2; exit 1; }
	mkdocs build --strict --site-dir "$(BUILD)/site"
	@echo "$(BUILD)/site/index.html; for its search: python3 -m http.server -d $(BUILD)/site"

help:
	@sed -n 's/^#   //p' Makefile

clean:
	rm -rf $(BUILD)
