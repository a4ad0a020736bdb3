// Command arrows counts how the files of packages use each other.
//
// An arrow leads from one file to another one that declares what the first one uses: a function, a
// type, a constant, a variable or a method. Files that can be read from the bottom up have arrows in
// one direction only. arrows looks for the order of the files in which the fewest arrows run back up,
// and says how many those are, and with -v which.
//
//	cd scripts/tools && go run ./arrows [-v] topdog/election topdog/election/roster
package main

import (
	"flag"
	"fmt"
	"go/token"
	"go/types"
	"log"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// arrow leads from a file to one that it uses.
type arrow struct{ from, to string }

func main() {
	log.SetFlags(0)
	verbose := flag.Bool("v", false, "list the arrows that run back up")
	dir := flag.String("C", "../..", "the `directory` of the module")
	flag.Parse()
	loaded, err := packages.Load(&packages.Config{
		Dir: *dir, Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps,
	}, flag.Args()...)
	if err != nil {
		log.Fatalf("arrows: cannot load %v: %v", flag.Args(), err)
	}
	if packages.PrintErrors(loaded) > 0 {
		log.Fatal("arrows: the packages have errors")
	}
	files, arrows := arrowsOf(loaded)
	order := shortest(files, arrows)
	back := 0
	for _, a := range slices.SortedFunc(maps.Keys(arrows), func(a, b arrow) int { return strings.Compare(a.from+a.to, b.from+b.to) }) {
		if slices.Index(order, a.from) > slices.Index(order, a.to) {
			back++
			if *verbose {
				fmt.Printf("%s -> %s: %s\n", filepath.Base(a.from), filepath.Base(a.to), strings.Join(slices.Sorted(maps.Keys(arrows[a])), ", "))
			}
		}
	}
	fmt.Printf("%d files, %d arrows, %d run back up\n", len(files), len(arrows), back)
}

// arrowsOf returns the files of packages, and for each arrow the names that it stands for.
func arrowsOf(loaded []*packages.Package) (files []string, arrows map[arrow]map[string]bool) {
	arrows = make(map[arrow]map[string]bool)
	for _, p := range loaded {
		for _, f := range p.Syntax {
			files = append(files, p.Fset.Position(f.Pos()).Filename)
		}
	}
	for _, p := range loaded {
		at := func(pos token.Pos) string { return p.Fset.Position(pos).Filename }
		for id, used := range p.TypesInfo.Uses {
			if !declared(used) {
				continue
			}
			a := arrow{at(id.Pos()), at(used.Pos())}
			if a.from == a.to || !slices.Contains(files, a.to) {
				continue
			}
			if arrows[a] == nil {
				arrows[a] = make(map[string]bool)
			}
			arrows[a][used.Name()] = true
		}
	}
	return files, arrows
}

// declared reports whether a file declares an object for others: fields and what functions declare do not count.
func declared(o types.Object) bool {
	if o.Pkg() == nil || !o.Pos().IsValid() {
		return false
	}
	f, ok := o.(*types.Func)
	return o.Parent() == o.Pkg().Scope() || ok && f.Signature().Recv() != nil
}

// shortest returns the best order of the files that was found: from many starts, each file is moved to where
// fewest arrows run back, until no move helps.
func shortest(files []string, arrows map[arrow]map[string]bool) (best []string) {
	one := func(a, b string) int {
		if _, ok := arrows[arrow{a, b}]; ok {
			return 1
		}
		return 0
	}
	fewest := len(arrows) + 1
	random := uint64(1)
	for range 200 {
		order := slices.Clone(files)
		for i := len(order) - 1; i > 0; i-- { // xorshift: the same figures each time
			random ^= random << 13
			random ^= random >> 7
			random ^= random << 17
			j := int(random % uint64(i+1))
			order[i], order[j] = order[j], order[i]
		}
		for moved := true; moved; {
			moved = false
			for i, file := range order {
				to, gain, sum := i, 0, 0
				for j := i + 1; j < len(order); j++ {
					if sum += one(file, order[j]) - one(order[j], file); sum < gain {
						to, gain = j, sum
					}
				}
				sum = 0
				for j := i - 1; j >= 0; j-- {
					if sum += one(order[j], file) - one(file, order[j]); sum < gain {
						to, gain = j, sum
					}
				}
				if to != i {
					order = slices.Insert(slices.Delete(order, i, i+1), to, file)
					moved = true
					break
				}
			}
		}
		if back := backwards(order, arrows); back < fewest {
			best, fewest = order, back
		}
	}
	return best
}

// backwards counts the arrows that lead to a file that comes before.
func backwards(order []string, arrows map[arrow]map[string]bool) (n int) {
	place := make(map[string]int)
	for i, file := range order {
		place[file] = i
	}
	for a := range arrows {
		if place[a.from] > place[a.to] {
			n++
		}
	}
	return n
}
