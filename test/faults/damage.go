package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sidebeat/sidebeat/run"
)

// damaged spoils one file of the data folder after the other and starts the
// registry on it: it refuses with words that help, or nothing is lost.
func damaged(ctx context.Context, s *scene) error {
	whole := filepath.Join(s.folder, "whole")
	if err := s.fillFolder(ctx, whole); err != nil {
		return err
	}
	paths, err := filesOf(whole)
	if err != nil {
		return err
	}
	seeds := s.some(600, 48)
	s.made = fmt.Sprintf("%d copies of a folder with two snapshots and a log, in each one of %d files spoiled: a bit flipped, cut off, a sector or a page of zeros", seeds, len(paths))
	refused, served := map[string]int{}, map[string]int{}
	for n := range seeds {
		path := paths[n%len(paths)]
		s.data = filepath.Join(s.folder, "spoiled")
		how, err := s.spoil(whole, path, n)
		if err != nil {
			return err
		}
		refuses, err := s.tryDamaged(ctx, path, how)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", how, path, err)
		}
		if refuses {
			refused[filepath.Base(path)]++
		} else {
			served[filepath.Base(path)]++
		}
	}
	for _, name := range []string{"raft.db", "state.bin", "meta.json"} {
		s.promise(refused[name] > 0, "no damage of %s was noticed", name)
	}
	s.note = fmt.Sprintf("refused %v; served with nothing lost (the lock holds a pid, the secret only tokens, and not every page of the log is in use): %v", refused, served)
	return nil
}

// fillFolder has the registry write two snapshots and some log behind them.
func (s *scene) fillFolder(ctx context.Context, whole string) error {
	s.data = whole
	users := filepath.Join(s.folder, "users")
	if err := s.makeUser(users); err != nil {
		return err
	}
	for n := range 3 {
		p, err := s.start(ctx)
		if err != nil {
			return err
		}
		began, most := s.count(write, "200"), []int{1500, 1500, 300}[n]
		stop := s.load(ctx, crowd{})
		err = s.until(ctx, time.Minute, "enough is written", func() bool { return s.count(write, "200") >= began+most })
		stop()
		if err != nil {
			return err
		}
		if n == 2 { // as a crash leaves it
			p.kill()
		} else if err := p.stop(); err != nil {
			return err
		}
	}
	s.env = []string{"SIDEBEAT_USERS_FILE=" + users}
	p, err := s.start(ctx) // makes the secret of tokens
	if err != nil {
		return err
	}
	if err := s.client.login("nacos", password); err != nil {
		return err
	}
	if err := s.check(ctx, true); err != nil {
		return err
	}
	p.kill()
	return nil
}

// filesOf gives the files below the folder that hold something, from there.
func filesOf(folder string) (paths []string, err error) {
	err = filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			within, _ := filepath.Rel(folder, path)
			paths = append(paths, within)
		}
		return err
	})
	for range 3 { // most of what counts is in the log
		paths = append(paths, "raft.db")
	}
	return paths, err
}

// spoil copies the folder and damages one file of the copy.
func (s *scene) spoil(whole, path string, n int) (how string, err error) {
	if err := os.RemoveAll(s.data); err != nil {
		return "", err
	}
	if err := os.CopyFS(s.data, os.DirFS(whole)); err != nil {
		return "", err
	}
	name := filepath.Join(s.data, path)
	content, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	at := s.random.IntN(len(content))
	zeros := func(unit int) {
		at -= at % unit
		clear(content[at:min(at+unit, len(content))])
	}
	switch n / 2 % 6 {
	case 0, 1:
		content[at] ^= 1 << s.random.IntN(8)
		how = "a flipped bit"
	case 2: // pages begin with what holds them together
		at = min(at-at%4096+s.random.IntN(64), len(content)-1)
		content[at] ^= 1 << s.random.IntN(8)
		how = "a flipped bit in the head of a page"
	case 3:
		content = content[:at]
		how = "a cut"
	case 4:
		zeros(512)
		how = "a sector of zeros"
	default:
		zeros(4096)
		how = "a page of zeros"
	}
	return fmt.Sprintf("%s at %d", how, at), os.WriteFile(name, content, 0o600)
}

// tryDamaged starts the registry on the spoiled folder.
func (s *scene) tryDamaged(ctx context.Context, path, how string) (refused bool, err error) {
	p, err := s.begin()
	if err != nil {
		return false, err
	}
	defer p.kill()
	if err := s.until(ctx, 20*time.Second, "it serves or refuses", func() bool { return p.over() || s.client.ready() }); err != nil {
		return false, err
	}
	if p.over() {
		s.ended = p.end()
		said := p.tail(5)
		helps := strings.Contains(said, filepath.Base(path)) && (strings.Contains(said, "move the folder away") || strings.Contains(said, "remove it"))
		s.promise(helps, "%s of %s: it does not name the file and say how to go on: %s", how, path, said)
		s.promise(p.ProcessState.ExitCode() == 1, "%s of %s: it ended with %s", how, path, p.end())
		s.ended = "exit 1, last line such as: " + p.lastWords()
		return true, nil
	}
	if err := s.client.login("nacos", password); err != nil { // a spoiled secret asks for that, and for no more
		return false, err
	}
	before := len(s.lost)
	if err := s.check(ctx, false); err != nil {
		return false, err
	}
	for i := range s.lost[before:] {
		s.lost[before+i] = how + " of " + path + ": " + s.lost[before+i]
	}
	return false, run.Wait(ctx, 0)
}

// pick gives those that hold the word.
func pick(all []string, word string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !strings.Contains(s, word) })
}
