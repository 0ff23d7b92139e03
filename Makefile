# SPDX-License-Identifier: MIT
#
# One Makefile, not recursive. Objects live in build/$(MODE)/. `make help` lists the targets.

# `make deps demo` and `make deps check` are the README's two commands. The packages are installed first, and
# only then is the rest read by a make of its own: what pkg-config says must be what is there by then.
ifneq ($(filter deps,$(MAKECMDGOALS)),)
REST := $(filter-out deps,$(MAKECMDGOALS))
.PHONY: deps $(REST)
deps: ## install the Debian packages that are needed (with demo: to build; with check: to test too)
	@tools/deps $(if $(filter check-lab,$(REST)),lab,$(if $(filter check%,$(REST)),check,build))
$(REST): deps
	@$(MAKE) --no-print-directory $@
else

MODE ?= release
V ?= 0
PREFIX ?= /usr/local
libexecdir ?= $(PREFIX)/libexec
DESTDIR ?=
bindir ?= $(PREFIX)/bin
libdir ?= $(PREFIX)/lib
includedir ?= $(PREFIX)/include
datadir ?= $(PREFIX)/share
mandir ?= $(datadir)/man
# The package of the recorder for Python: for PYTHONPATH, or to be installed by pip from here.
pythondir ?= $(datadir)/reprise/python
VERSION := $(shell sed -n 's/^.define RP_VERSION "\(.*\)"/\1/p' include/reprise.h)
SOMAJOR := $(firstword $(subst ., ,$(VERSION)))
PKG_CONFIG ?= pkg-config
B := build/$(MODE)

# The arrows of the house: a folder sees the folders on its left and no others. Each folder is compiled
# against a folder of links to what it may include, so that a wrong arrow does not compile.
FOLDERS := base finding value container rng columns state profile ledger curve audit report api cli
SEES_base := base
SEES_finding := $(SEES_base) finding
SEES_value := $(SEES_finding) value
SEES_container := $(SEES_value) container
SEES_rng := base rng
SEES_columns := base columns
SEES_state := $(SEES_container) rng columns state
SEES_profile := $(SEES_state) profile
SEES_ledger := $(SEES_profile) ledger
SEES_curve := $(SEES_state) curve
SEES_audit := $(SEES_ledger) curve audit
SEES_report := $(SEES_audit) report
SEES_api := $(SEES_report) api
SEES_cli := $(SEES_api) cli
# The helper executable stands apart: it alone sees HDF5, and nothing sees it.
SEES_h5 := base columns h5

# Where an installed tool finds the helper executable, when it does not stand beside its prefix.
DEFINES_columns := -DREPRISE_LIBEXEC='"$(libexecdir)/reprise"'
SEES_recorder := base recorder

# Flags. CFLAGS and LDFLAGS are the user's and come last.
PACKAGES := libxxhash libdeflate libcrypto
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Wvla -Wformat=2 -Wcast-qual \
	-Wwrite-strings -Wstrict-prototypes -Wmissing-prototypes -Wnull-dereference
MODE_FLAGS_release := -O2 -g
MODE_FLAGS_debug := -O0 -g3 -DREPRISE_DEBUG
MODE_FLAGS_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
MODE_FLAGS_tsan := -O1 -g -fsanitize=thread
MODE_FLAGS_cov := -O0 -g --coverage
MODE_FLAGS_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
MODE_FLAGS_werror := -O2 -g -Werror
MODE_FLAGS_clang := -O2 -g -Werror
MODE_FLAGS_portable := -O2
MODE_LDFLAGS_fuzz := -fsanitize=address,undefined
MODE_LDFLAGS_portable := -static-pie -s
ifneq ($(filter $(MODE),fuzz clang),)
CC := clang
endif
ALL_CFLAGS = -std=c11 -fPIC -pthread -fvisibility=hidden $(WARNINGS) $(MODE_FLAGS_$(MODE)) \
	$(shell $(PKG_CONFIG) --cflags $(PACKAGES)) $(CFLAGS)
ALL_LDFLAGS = -pthread $(filter -fsanitize=% --coverage,$(MODE_FLAGS_$(MODE):-fsanitize=fuzzer-no-link%=)) \
	$(MODE_LDFLAGS_$(MODE)) $(LDFLAGS)
LIBS = $(shell $(PKG_CONFIG) $(if $(filter portable,$(MODE)),--static) --libs $(PACKAGES)) -lm
TEST_PACKAGES := check jansson
# Debian has several builds of HDF5 side by side; elsewhere there is one.
HDF5_PACKAGE = $(shell $(PKG_CONFIG) --exists hdf5-serial && echo hdf5-serial || echo hdf5)
H5_PACKAGES = $(HDF5_PACKAGE) libseccomp
DEFINES_h5 = $(shell $(PKG_CONFIG) --cflags $(H5_PACKAGES))
# What a static HDF5 wants behind it, which Debian's pkg-config file does not say.
H5_LIBS_portable = -lsz -laec $(shell $(PKG_CONFIG) --static --libs libcrypto) -lz -lm -ldl

ifeq ($(V),0)
Q := @
say = @printf '  %-7s %s\n' $(1) $(2)
else
Q :=
say = @:
endif

SRC := $(foreach f,$(filter-out cli,$(FOLDERS)),$(wildcard src/$f/*.c))
CLI_SRC := $(wildcard src/cli/*.c)
H5_SRC := $(wildcard src/h5/*.c) $(filter src/h5/$(MODE)/%,$(wildcard src/h5/*/*.c))
UNIT_SRC := $(wildcard tests/unit/*.c tests/support/*.c)
RECORD_SRC := $(wildcard src/recorder/*.c)
FUZZ_SRC := $(filter-out tests/fuzz/replay.c tests/fuzz/entry.c,$(wildcard tests/fuzz/*.c)) \
	tests/support/ledgers.c
FUZZ_TARGETS := $(shell sed -n 's/^TARGET(\(.*\))$$/\1/p' tests/fuzz/targets.def)
OBJ := $(SRC:src/%.c=$B/%.o)
CLI_OBJ := $(CLI_SRC:src/%.c=$B/%.o)
H5_OBJ := $(H5_SRC:src/%.c=$B/%.o)
UNIT_OBJ := $(UNIT_SRC:tests/%.c=$B/tests/%.o)
RECORD_OBJ := $(RECORD_SRC:src/%.c=$B/%.o)
FUZZ_OBJ := $(FUZZ_SRC:tests/%.c=$B/tests/%.o)
TABLES_OBJ := $(patsubst tools/tables/%.c,$B/tools/tables/%.o,$(wildcard tools/tables/*.c))
FUZZERS := $(FUZZ_TARGETS:%=$B/fuzz/%)
REPLAY := $B/fuzz-replay

.PHONY: all
RECORD_SO := $B/libreprise-record.so.$(VERSION)

all: $B/reprise $B/reprise-h5 $B/libreprise.a $B/libreprise.so.$(VERSION) $(RECORD_SO) ## build the tool, its helper, the libraries and the recorder

# The helper belongs beside the tool, also here.
$B/reprise: $(CLI_OBJ) $B/libreprise.a | $B/reprise-h5
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(CLI_OBJ) $B/libreprise.a $(LIBS)

$B/reprise-h5: $(H5_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(H5_OBJ) $(shell $(PKG_CONFIG) --libs $(H5_PACKAGES)) $(H5_LIBS_$(MODE))

$B/libreprise.a: $(OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcsD $@ $(OBJ)

$B/libreprise.so.$(VERSION): $(OBJ) src/api/libreprise.map
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -shared $(ALL_LDFLAGS) -Wl,-soname,libreprise.so.$(SOMAJOR) \
		-Wl,--version-script=src/api/libreprise.map -o $@ $(OBJ) $(LIBS)

# Loaded into training processes: libc alone (XXH3 is compiled in). What it does to a step's samples are loops that the
# compiler makes a fifth shorter with vectors.
$(RECORD_OBJ): MODE_FLAGS_release := -O3 -g
$(RECORD_SO): $(RECORD_OBJ) src/recorder/libreprise-record.map
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -shared $(ALL_LDFLAGS) -Wl,-soname,libreprise-record.so.$(SOMAJOR) \
		-Wl,-z,defs -Wl,--version-script=src/recorder/libreprise-record.map -o $@ $(RECORD_OBJ)
	$(Q)ln -sf $(@F) $B/libreprise-record.so

# Rebuild exactly when the compiler or a flag changed.
STAMP := $B/flags
FLAGS_NOW := $(CC) $(ALL_CFLAGS) | $(ALL_LDFLAGS) | $(libexecdir)
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(FLAGS_NOW))
.PHONY: $(STAMP)
endif
$(STAMP):
	@mkdir -p $(@D)
	@printf '%s\n' '$(FLAGS_NOW)' > $@

# The folders of links; order-only, so that their time stamps rebuild nothing.
define arrows
build/arrows/$(1): Makefile
	@mkdir -p $$@
	@for d in $$(SEES_$(1)); do ln -sfn ../../../src/$$$$d $$@/$$$$d; done
	@touch $$@
$B/$(1)/%.o: src/$(1)/%.c $(STAMP) | build/arrows/$(1)
	@mkdir -p $$(@D)
	$$(call say,CC,$$<)
	$$(Q)$$(CC) $$(ALL_CFLAGS) $$(DEFINES_$(1)) -Iinclude -Ibuild/arrows/$(1) -MMD -MP -c -o $$@ $$<
endef
$(foreach f,$(FOLDERS) h5 recorder,$(eval $(call arrows,$f)))

$B/tests/%.o: tests/%.c $(STAMP)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -Wno-missing-prototypes $(shell $(PKG_CONFIG) --cflags $(TEST_PACKAGES)) \
		-Iinclude -Isrc -Itests -MMD -MP -c -o $@ $<

# What prints the tables for the manual and the completion: a program of the developers', made from the tool's files.
$B/tools/%.o: tools/%.c $(STAMP)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -Iinclude -Isrc -MMD -MP -c -o $@ $<

$B/tables: $(TABLES_OBJ) $(filter-out $B/cli/main.o,$(CLI_OBJ)) $B/libreprise.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $B/libreprise.a $(LIBS)

-include $(TABLES_OBJ:.o=.d) $(OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(H5_OBJ:.o=.d) $(RECORD_OBJ:.o=.d) $(UNIT_OBJ:.o=.d) $(FUZZ_OBJ:.o=.d) $B/tests/fuzz/replay.d $B/tests/fuzz/entry.d

# Tests ------------------------------------------------------------------------------------------

$B/unit: $(UNIT_OBJ) $(RECORD_OBJ) $B/libreprise.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(UNIT_OBJ) $(RECORD_OBJ) $B/libreprise.a \
		$(shell $(PKG_CONFIG) --libs $(TEST_PACKAGES)) $(LIBS)

$(REPLAY): $B/tests/fuzz/replay.o $(FUZZ_OBJ) $B/libreprise.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $B/libreprise.a $(LIBS)

$B/mutations: $B/tests/mutations/snapshot.o $B/tests/fuzz/check.o $B/tests/fuzz/policy.o $B/libreprise.a | $B/reprise-h5
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $B/libreprise.a $(LIBS)

-include $(wildcard $B/tests/mutations/snapshot.d $B/tests/fault/*.d)

# Mutated snapshots through the real helper, and as many mutated policies: MUTATIONS=200000 for a long run, MUTATION_SEED for another one.
MUTATIONS ?= 600
MUTATION_SEED ?= 1
.PHONY: check-mutations
check-mutations: $B/mutations ## push mutated snapshots through the HDF5 helper, and policies (MUTATIONS=600, MUTATION_SEED=1)
	$(Q)$B/mutations $(MUTATIONS) $(MUTATION_SEED)

# The same objects, with the calls that faults.syms lists led to functions that can fail.
FAULT_SRC := $(wildcard tests/fault/*.c)
FAULT_OBJ := $(FAULT_SRC:tests/%.c=$B/tests/%.o)
$(FAULT_OBJ): tests/fault/commands.def

$B/fault.a: $(OBJ) $(CLI_OBJ) tests/fault/faults.syms
	$(call say,OBJCOPY,$@)
	$(Q)rm -f $@ && ar rcsD $@ $(OBJ) $(CLI_OBJ) && objcopy --redefine-syms=tests/fault/faults.syms $@

$B/fault: $(FAULT_OBJ) $B/fault.a | $B/reprise-h5
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(FAULT_OBJ) $B/fault.a $(LIBS)

.PHONY: demo
DEMO := fixtures/transformers-5.24.0/optimizer-lost/out
demo: $B/reprise ## build, and judge a shipped pair of real checkpoints in which something is wrong
	@echo "# A Trainer run was killed after checkpoint-12 and relaunched. Training went on, nothing was said."
	@echo '$$ reprise verify $(DEMO)'
	@$B/reprise verify $(DEMO); status=$$?; echo "exit status $$status"; test $$status -eq 1

# libFuzzer finds its way through what MODE=fuzz compiled. What it learns stays in build/fuzz/.
FUZZ ?= pickle
FUZZ_SECONDS ?= 60
FUZZ_ARGS ?=

$(FUZZERS): $B/fuzz/%: tests/fuzz/entry.c $(FUZZ_OBJ) $B/libreprise.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -DFUZZ_TARGET=$* -Iinclude -Isrc -Itests $(ALL_LDFLAGS) -fsanitize=fuzzer \
		-o $@ $(filter %.c %.o,$^) $B/libreprise.a $(LIBS)

.PHONY: fuzz
fuzz: ## fuzz the target FUZZ=pickle for FUZZ_SECONDS=60 (needs clang)
	$(Q)$(MAKE) MODE=fuzz build/fuzz/fuzz/$(FUZZ)
	$(Q)mkdir -p build/fuzz/learned/$(FUZZ) build/fuzz/finds
	$(Q)build/fuzz/fuzz/$(FUZZ) -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=4000 \
		-artifact_prefix=build/fuzz/finds/$(FUZZ)- \
		$(patsubst %,-dict=%,$(wildcard tests/fuzz/$(FUZZ).dict)) $(FUZZ_ARGS) \
		build/fuzz/learned/$(FUZZ) tests/fuzz/corpus/$(FUZZ)

.PHONY: check check-unit check-fault check-fault-all check-cli check-fixtures check-fuzz check-library
check: check-unit check-fault check-fuzz check-mutations check-fixtures check-cli check-man check-completion check-library check-install ## run all tests that need only Debian packages

check-man: $B/reprise $B/tables ## hold manual, README and completion against what the tool says
	$(Q)BUILD=$B tools/documents --check
	$(Q)tests/manual.py $B

check-library: $B/libreprise.so.$(VERSION) $(RECORD_SO) ## hold what the libraries export against their headers and maps
	$(Q)tests/library.sh $B/libreprise.so.$(VERSION) include/reprise.h src/api/libreprise.map "$(CC)"
	$(Q)tests/library.sh $(RECORD_SO) include/reprise_record.h src/recorder/libreprise-record.map "$(CC)"

check-completion: ## complete command lines in bash
	$(Q)tests/completion.py

check-install: all ## install into an empty folder, use what is there, uninstall
	$(Q)tests/install.sh "$(MAKE)" "$(MODE)" "$(PREFIX)" "$(CC) $(filter -fsanitize=% --coverage,$(MODE_FLAGS_$(MODE)))"

.PHONY: portable check-portable
PORTABLE := build/portable/reprise build/portable/reprise-h5
portable: ## build the tool without any need of a library: copy it to any Linux machine of this kind
	$(Q)$(MAKE) --no-print-directory MODE=portable $(PORTABLE)
	@ls -l $(PORTABLE)

check-portable: portable $B/reprise ## run it in a folder with nothing else, with the system calls of Linux 4.18 (as root)
	$(Q)tests/portable/check.sh "$(CC)" $(PORTABLE) $B/reprise

.PHONY: check-other-release
check-other-release: ## run the tests on the other Debian release, in a chroot (as root)
	$(Q)+tests/other-release.sh

check-unit: $B/unit $B/reprise-h5 ## run the unit tests
	$(Q)CK_DEFAULT_TIMEOUT=$${CK_DEFAULT_TIMEOUT:-60} $B/unit

# Not part of check: it needs CPython 3.11, a network the first time, and minutes. LAB_VENV: a ready environment.
LAB_VENV ?= build/lab/venv
.PHONY: check-lab
check-lab: $B/reprise $(RECORD_SO) ## train, kill, resume and audit with real frameworks
	$(Q)tests/lab/run $B/reprise $(RECORD_SO) $(LAB_VENV)

check-fault: $B/fault $B/reprise ## let calls to the system fail in turn, far ones not each
	$(Q)tests/fault.sh $B/fault $B/reprise

check-fault-all: $B/fault $B/reprise ## let every single call to the system fail
	$(Q)FAULT_ALL=1 tests/fault.sh $B/fault $B/reprise

check-fuzz: $(REPLAY) ## replay the fuzzing corpus and every past find
	$(Q)$(REPLAY) tests/fuzz/corpus

check-fixtures: $B/reprise ## hold every fixture's report against its expectations
	$(Q)tests/fixtures.sh $B/reprise
	$(Q)python3 tests/snapshots.py $B/reprise

check-cli: $B/reprise ## run the command line cases
	$(Q)tests/cli.sh $B/reprise

# Everything else --------------------------------------------------------------------------------

BENCHES := $(patsubst bench/%.c,$B/bench/%,$(wildcard bench/*.c))

$(BENCHES): $B/bench/%: bench/%.c $B/libreprise.a $(RECORD_OBJ)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -Iinclude -Isrc $(ALL_LDFLAGS) -o $@ $< $(RECORD_OBJ) $B/libreprise.a $(LIBS)

.PHONY: bench
bench: $(RECORD_SO) $B/bench/pickle $B/bench/rng $B/bench/ledger $B/bench/record $B/bench/console $B/reprise $B/reprise-h5 ## measure speeds as ratios to what one would run instead (PYTHON=… with torch)
	$(Q)bench/run.sh $B $(BENCH)

.PHONY: documents
documents: $B/reprise $B/tables ## put into manual, README, schema and completion what the tool says
	$(Q)BUILD=$B tools/documents

.PHONY: clean
clean: ## remove what was built
	rm -rf build

# What is installed: MODE FILE TO, or `link` TARGET TO, below DESTDIR. Functions of libreprise(3) are links to its page.
RECORD_API := $(shell sed -n 's/^\.Fo //p' man/libreprise-record.3)
API := $(filter rp_%,$(subst ;, ,$(file <src/api/libreprise.map)))
INSTALLED = \
	755:$B/reprise:$(bindir)/reprise \
	755:$B/reprise-h5:$(libexecdir)/reprise/reprise-h5 \
	644:$B/libreprise.a:$(libdir)/libreprise.a \
	755:$B/libreprise.so.$(VERSION):$(libdir)/libreprise.so.$(VERSION) \
	link:libreprise.so.$(VERSION):$(libdir)/libreprise.so.$(SOMAJOR) \
	link:libreprise.so.$(SOMAJOR):$(libdir)/libreprise.so \
	755:$(RECORD_SO):$(libdir)/libreprise-record.so.$(VERSION) \
	link:libreprise-record.so.$(VERSION):$(libdir)/libreprise-record.so.$(SOMAJOR) \
	link:libreprise-record.so.$(SOMAJOR):$(libdir)/libreprise-record.so \
	644:$B/reprise.pc:$(libdir)/pkgconfig/reprise.pc \
	644:$B/reprise-record.pc:$(libdir)/pkgconfig/reprise-record.pc \
	$(foreach h,$(wildcard include/*.h),644:$h:$(includedir)/$(notdir $h)) \
	$(foreach p,$(wildcard man/*.[0-9]),644:$p:$(mandir)/man$(patsubst .%,%,$(suffix $p))/$(notdir $p)) \
	$(foreach f,$(API),link:libreprise.3:$(mandir)/man3/$f.3) \
	$(foreach f,$(RECORD_API),link:libreprise-record.3:$(mandir)/man3/$f.3) \
	644:bindings/python/pyproject.toml:$(pythondir)/pyproject.toml \
	644:bindings/python/README.md:$(pythondir)/README.md \
	$(foreach p,$(wildcard bindings/python/reprise/*.py),644:$p:$(pythondir)/reprise/$(notdir $p)) \
	644:share/bash-completion/completions/reprise:$(datadir)/bash-completion/completions/reprise \
	644:share/reprise-1.schema.json:$(datadir)/reprise/reprise-1.schema.json \
	$(foreach e,$(wildcard examples/*.sh),755:$e:$(datadir)/reprise/examples/$(notdir $e)) \
	$(foreach e,$(wildcard examples/*.ini),644:$e:$(datadir)/reprise/examples/$(notdir $e))
# Folders that are ours alone, to be removed with what is in them; innermost first.
INSTALLED_FOLDERS = $(pythondir)/reprise $(pythondir) $(datadir)/reprise/examples $(datadir)/reprise $(libexecdir)/reprise

# No prefix but the one it is installed below; what pkg-config says of ours is for programs that link it. Of the
# package $(1): $(2) its description, $(3) more lines, $(4) what to link.
define pc
.PHONY: $B/$(1).pc
$B/$(1).pc: Makefile
	@mkdir -p $$(@D)
	@printf '%s\n' 'prefix=$$(PREFIX)' 'includedir=$$(patsubst $$(PREFIX)/%,$$$${prefix}/%,$$(includedir))' \
		'libdir=$$(patsubst $$(PREFIX)/%,$$$${prefix}/%,$$(libdir))' '' 'Name: $(1)' 'Description: $(2)' \
		'Version: $$(VERSION)' $(3) 'Cflags: -I$$$${includedir}' 'Libs: -L$$$${libdir} $(4)' >$$@
endef
$(eval $(call pc,reprise,judge whether a resume from a training checkpoint can be exact,'Requires.private: $(PACKAGES)' 'Libs.private: -lm -pthread',-lreprise))
$(eval $(call pc,reprise-record,record which samples a training run consumes,,-lreprise-record))

.PHONY: install uninstall
install: all $B/reprise.pc $B/reprise-record.pc ## install below $(DESTDIR)$(PREFIX)
	$(Q)set -e; for row in $(INSTALLED); do \
		mode=$${row%%:*} to=$${row##*:} file=$${row#*:}; file=$${file%:*}; \
		if [ $$mode = link ]; then \
			install -d "$(DESTDIR)$${to%/*}" && ln -sfn "$$file" "$(DESTDIR)$$to"; \
		else \
			install -D -m $$mode "$$file" "$(DESTDIR)$$to"; \
		fi; \
	done

uninstall: ## remove what install installed
	$(Q)for row in $(INSTALLED); do rm -f "$(DESTDIR)$${row##*:}"; done
	$(Q)for folder in $(INSTALLED_FOLDERS); do rmdir "$(DESTDIR)$$folder" 2>/dev/null || :; done

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-][a-z -]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 20
	@echo "  MODE=release (default), debug, asan, tsan, cov, fuzz; V=1 shows the commands"

endif
