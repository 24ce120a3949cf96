//go:build ignore

// Makes the images without a container engine: reads the Dockerfile with
// BuildKit's own parser and linter, copies what its last stages copy, and
// writes one OCI layout for each of them, with an image for each architecture.
// Times and owners are given, so that the same files give the same bytes. With
// -extract LAYOUT it does the reverse: OUT/rootfs.tar holds what the layers of
// one architecture hold, OUT/config the user, the program and the settings,
// OUT/labels the labels.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// maker makes images from the stages of one Dockerfile.
type maker struct {
	stages  []instructions.Stage
	roots   string            // ROOTS/ARCHITECTURE holds what the build stage leaves in /out
	given   map[string]string // build arguments
	created time.Time
}

func main() {
	dockerfile := flag.String("dockerfile", "Dockerfile", "")
	out := flag.String("out", "", "folder for one layout each")
	epoch := flag.Int64("epoch", 0, "seconds since 1970 that files and images bear")
	m := maker{given: map[string]string{}}
	flag.StringVar(&m.roots, "roots", "", "folder with one folder for each architecture")
	flag.Func("arg", "NAME=VALUE", func(s string) error {
		name, value, ok := strings.Cut(s, "=")
		m.given[name] = value
		if !ok {
			return errors.New("give NAME=VALUE")
		}
		return nil
	})
	extracted := flag.String("extract", "", "layout to read instead")
	flag.Parse()
	if *extracted != "" {
		if err := extract(*extracted, *out, flag.Arg(0)); err != nil {
			fmt.Fprintln(os.Stderr, "cannot extract the image:", err)
			os.Exit(1)
		}
		return
	}
	m.created = time.Unix(*epoch, 0).UTC()
	if err := m.all(*dockerfile, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "cannot make the images:", err)
		os.Exit(1)
	}
}

func (m *maker) all(dockerfile, out string, architectures []string) error {
	if err := m.parse(dockerfile); err != nil {
		return err
	}
	for _, stage := range m.stages {
		if len(entrypoint(stage)) == 0 {
			continue
		}
		index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
		for _, arch := range architectures {
			img, err := m.image(stage, arch)
			if err != nil {
				return fmt.Errorf("%s for %s: %w", stage.Name, arch, err)
			}
			index = mutate.AppendManifests(index, mutate.IndexAddendum{
				Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
			})
		}
		if err := write(filepath.Join(out, stage.Name), index); err != nil {
			return err
		}
	}
	return nil
}

// write writes a layout and reads it again: every digest and size is compared.
func write(folder string, index v1.ImageIndex) error {
	at, err := layout.Write(folder, index)
	if err != nil {
		return err
	}
	back, err := at.ImageIndex()
	if err != nil {
		return err
	}
	digest, err := back.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s %s\n", filepath.Base(folder), digest)
	return validate.Index(back)
}

func extract(from, out, arch string) error {
	index, err := layout.ImageIndexFromPath(from)
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(manifest.Manifests, func(d v1.Descriptor) bool { return d.Platform.Architecture == arch })
	if at < 0 {
		return fmt.Errorf("%s has no image for %q", from, arch)
	}
	img, err := index.Image(manifest.Manifests[at].Digest)
	if err != nil {
		return err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return err
	}
	rootfs, err := os.Create(filepath.Join(out, "rootfs.tar"))
	if err != nil {
		return err
	}
	_, err = io.Copy(rootfs, mutate.Extract(img))
	c := file.Config
	lines := append([]string{c.User, strings.Join(c.Entrypoint, " ")}, c.Env...)
	var labels []string
	for name, value := range c.Labels {
		labels = append(labels, name+"="+value)
	}
	slices.Sort(labels)
	write := func(name string, lines []string) error {
		return os.WriteFile(filepath.Join(out, name), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
	}
	return errors.Join(err, rootfs.Close(), write("config", lines), write("labels", labels))
}

// parse refuses whatever BuildKit's linter warns of.
func (m *maker) parse(dockerfile string) error {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		return err
	}
	result, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return err
	}
	var faults []error
	lint := linter.New(&linter.Config{Warn: func(rule, _, _, message string, _ []parser.Range) {
		faults = append(faults, fmt.Errorf("%s: %s: %s", dockerfile, rule, message))
	}})
	m.stages, _, err = instructions.Parse(result.AST, lint)
	return errors.Join(append(faults, err)...)
}

func entrypoint(s instructions.Stage) []string {
	for _, c := range s.Commands {
		if e, ok := c.(*instructions.EntrypointCommand); ok && !e.PrependShell {
			return e.CmdLine
		}
	}
	return nil
}

// image makes one image: what its base stage says first.
func (m *maker) image(s instructions.Stage, arch string) (v1.Image, error) {
	file := &v1.ConfigFile{OS: "linux", Architecture: arch, Created: v1.Time{Time: m.created}, RootFS: v1.RootFS{Type: "layers"}}
	img, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), file)
	if err != nil {
		return nil, err
	}
	config, arguments := v1.Config{WorkingDir: "/", Labels: map[string]string{}}, map[string]string{}
	img, err = m.apply(img, &config, arguments, s, arch)
	if err != nil {
		return nil, err
	}
	return mutate.Config(img, config)
}

func (m *maker) apply(img v1.Image, config *v1.Config, arguments map[string]string, s instructions.Stage, arch string) (v1.Image, error) {
	if s.BaseName != "scratch" {
		at := slices.IndexFunc(m.stages, func(b instructions.Stage) bool { return b.Name == s.BaseName })
		if at < 0 {
			return nil, fmt.Errorf("there is no stage %q", s.BaseName)
		}
		var err error
		if img, err = m.apply(img, config, arguments, m.stages[at], arch); err != nil {
			return nil, err
		}
	}
	for _, c := range s.Commands {
		if copied, ok := c.(*instructions.CopyCommand); ok {
			layer, err := m.layer(copied, arch)
			if err != nil {
				return nil, err
			}
			if img, err = mutate.Append(img, mutate.Addendum{
				Layer: layer, MediaType: types.OCILayer,
				History: v1.History{Created: v1.Time{Time: m.created}, CreatedBy: copied.String()},
			}); err != nil {
				return nil, err
			}
		} else if err := m.configure(config, arguments, c); err != nil {
			return nil, err
		}
	}
	return img, nil
}

// configure does what one line says that copies nothing.
func (m *maker) configure(config *v1.Config, arguments map[string]string, c instructions.Command) error {
	expand := func(word string) (string, error) {
		var env []string
		for name, value := range arguments {
			env = append(env, name+"="+value)
		}
		result, _, err := shell.NewLex('\\').ProcessWord(word, shell.EnvsFromSlice(env))
		return result, err
	}
	if e, ok := c.(interface {
		Expand(instructions.SingleWordExpander) error
	}); ok {
		if err := e.Expand(expand); err != nil {
			return err
		}
	}
	switch c := c.(type) {
	case *instructions.ArgCommand:
		for _, a := range c.Args {
			arguments[a.Key] = ""
			if a.Value != nil {
				arguments[a.Key] = *a.Value
			}
			if given, ok := m.given[a.Key]; ok {
				arguments[a.Key] = given
			}
		}
	case *instructions.LabelCommand:
		for _, l := range c.Labels {
			config.Labels[l.Key] = l.Value
		}
	case *instructions.EnvCommand:
		for _, e := range c.Env {
			config.Env = append(config.Env, e.Key+"="+e.Value)
		}
	case *instructions.UserCommand:
		config.User = c.User
	case *instructions.EntrypointCommand:
		config.Entrypoint = c.CmdLine
	case *instructions.ExposeCommand:
		config.ExposedPorts = map[string]struct{}{}
		for _, port := range c.Ports {
			config.ExposedPorts[port+"/tcp"] = struct{}{}
		}
	case *instructions.VolumeCommand:
		config.Volumes = map[string]struct{}{}
		for _, v := range c.Volumes {
			config.Volumes[v] = struct{}{}
		}
	default:
		return fmt.Errorf("cannot do %s", c)
	}
	return nil
}

// layer packs what one COPY copies from the build stage's /out.
func (m *maker) layer(c *instructions.CopyCommand, arch string) (v1.Layer, error) {
	if len(c.SourcePaths) != 1 || c.From != "build" {
		return nil, fmt.Errorf("cannot do %s", c)
	}
	from, ok := strings.CutPrefix(c.SourcePaths[0], "/out/")
	uid, gid := 0, 0
	if user, group, owned := strings.Cut(c.Chown, ":"); owned {
		var err1, err2 error
		uid, err1 = strconv.Atoi(user)
		gid, err2 = strconv.Atoi(group)
		ok = ok && err1 == nil && err2 == nil
	}
	if !ok {
		return nil, fmt.Errorf("cannot do %s", c)
	}
	packed, err := m.pack(filepath.Join(m.roots, arch, from), c.DestPath, uid, gid)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed)), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

func (m *maker) pack(root, under string, uid, gid int) ([]byte, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, file)
		name := strings.TrimPrefix(path.Join(under, filepath.ToSlash(relative)), "/")
		if err != nil || name == "" {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		header := tar.Header{Name: name, Uid: uid, Gid: gid, ModTime: m.created, Mode: int64(info.Mode().Perm()), Typeflag: tar.TypeReg, Size: info.Size()}
		if entry.IsDir() {
			header.Name, header.Typeflag, header.Size = name+"/", tar.TypeDir, 0
			return w.WriteHeader(&header)
		}
		return pour(w, &header, file)
	})
	return packed.Bytes(), errors.Join(err, w.Close())
}

func pour(w *tar.Writer, header *tar.Header, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}
